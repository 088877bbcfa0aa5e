// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/creack/pty"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/term"
)

// window is a run of the command on a terminal.
type window struct {
	t   *testing.T
	cmd *exec.Cmd
	pty *os.File

	mu      sync.Mutex
	shown   bytes.Buffer
	seen    int           // bytes that expect has passed
	changed chan struct{} // holds a value after more was shown
	over    chan struct{} // closed when the terminal was
}

// onTerminal starts the command on a terminal.
func (r run) onTerminal(t *testing.T, args ...string) *window {
	t.Helper()
	return r.onTerminalOf(t, pty.Winsize{Rows: 40, Cols: 120}, args...)
}

// onTerminalOf starts the command on a terminal of a size.
func (r run) onTerminalOf(t *testing.T, size pty.Winsize, args ...string) *window {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	x := &window{t: t, cmd: r.command(ctx, t, args...), changed: make(chan struct{}, 1), over: make(chan struct{})}
	var err error
	if x.pty, err = pty.StartWithSize(x.cmd, &size); err != nil {
		t.Fatal(err)
	}
	go x.watch()
	t.Cleanup(func() { x.pty.Close(); <-x.over })
	return x
}

func (x *window) watch() {
	defer close(x.over)
	buffer := make([]byte, 4096)
	for {
		n, err := x.pty.Read(buffer)
		x.mu.Lock()
		x.shown.Write(buffer[:n])
		x.mu.Unlock()
		select {
		case x.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// expect waits until text is shown after the previously expected text.
func (x *window) expect(text string) {
	x.t.Helper()
	deadline := time.After(limit)
	for {
		x.mu.Lock()
		fresh := x.shown.Bytes()[x.seen:]
		at := bytes.Index(fresh, []byte(text))
		if at >= 0 {
			x.seen += at + len(text)
		}
		rest := string(fresh)
		x.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-x.changed:
		case <-deadline:
			x.t.Fatalf("%q was never shown after what came before, only %q", text, rest)
		}
	}
}

func (x *window) types(text string) {
	x.t.Helper()
	if _, err := x.pty.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the command and returns all that was shown.
func (x *window) ends(want exit.Status) string {
	x.t.Helper()
	x.cmd.Wait()
	<-x.over
	noProcessLeft(x.t)
	x.mu.Lock()
	defer x.mu.Unlock()
	if got := x.cmd.ProcessState.ExitCode(); got != int(want) {
		x.t.Errorf("exit status %d, want %d; shown: %q", got, want, &x.shown)
	}
	return x.shown.String()
}

// colour is a change of colour; the spinner alone moves the cursor.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestATerminalIsPleasant(t *testing.T) {
	t.Parallel()
	script := []openaiserver.Step{says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("It snows.")}
	shown := run{}.onTerminal(t, "run", "Oslo?", "--config", file(t, model(t, script...), atlas(200*time.Millisecond))).ends(exit.Done)
	erased := regexp.QuoteMeta("\x1b[1F" + terminal.EraseBelow)
	for _, part := range []string{`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] atlas__weather`, "\x1b\\[3.m✓\x1b", `0\.\d\ds`, erased, "It snows.\r\n$"} {
		if !regexp.MustCompile(part).MatchString(shown) {
			t.Errorf("no %q in %q", part, shown)
		}
	}
	plainly := run{env: []string{"NO_COLOR=1"}}.onTerminal(t, "run", "Oslo?", "--config", file(t, model(t, script...), atlas(0))).ends(exit.Done)
	if found := colour.FindString(plainly); found != "" {
		t.Errorf("NO_COLOR is set, and yet there is %q in %q", found, plainly)
	}
	dumb := run{env: []string{"TERM=dumb"}}.onTerminal(t, "run", "Oslo?", "--config", file(t, model(t, script...), atlas(0))).ends(exit.Done)
	lacks(t, "a dumb terminal", dumb, "\x1b")
}

// What a server says cannot take over the terminal.
func TestATerminalIsSafe(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Title: \x1b]0;owned\a."),
		says("done")), atlas(0))
	shown := run{}.onTerminal(t, "run", "hi", "--config", path).ends(exit.Done)
	lacks(t, "the screen", shown, "\x1b]0;", "\a")
}

// What cannot be seen is made visible wherever people read or approve.
func TestATerminalShowsWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	arguments, _ := json.Marshal(map[string]any{"items": []string{"hat" + hostile}})
	script := func() string {
		return file(t, model(t, says("I pack. "+hostile, calls("satchel__pack", string(arguments))), says("Packed. "+hostile)), satchel(0))
	}
	plain := run{env: []string{"NO_COLOR=1"}}
	for _, args := range []string{"run hi --approve all", "run hi --approve all --json"} {
		text := plain.onTerminal(t, append(strings.Fields(args), "--config", script())...).ends(exit.Done)
		lacksUnseen(t, args, text)
		if !strings.Contains(text, "<U+E0041>") && !strings.Contains(text, `\udb40\udc41`) {
			t.Errorf("%s: the tag is not made visible: %q", args, text)
		}
	}
	for _, json := range []string{"", "--json"} {
		args := append(strings.Fields("call satchel pack "+json), string(arguments), "--config", script())
		lacksUnseen(t, "call "+json, plain.onTerminal(t, args...).ends(exit.Done))
	}
	path := script()
	if text, err := os.ReadFile(path); err != nil || os.WriteFile(path, append(text, "[approval]\ndefault = \"ask\"\n"...), 0o600) != nil {
		t.Fatal(err)
	}
	x := plain.chats(t, 120, 40, "--config", path)
	x.says("Pack.")
	x.See("<U+E0041>", "y once")
	x.chooses("y", "once")
	x.See("Packed.")
	x.says("/history")
	x.leaves()
	x.SeeAnywhere(`<U+E000>`)
	lacksUnseen(t, "chat", x.Raw())
}

// slowly is an answer that takes long enough to be interrupted.
func slowly(words int) openaiserver.Step {
	return openaiserver.Step{Reply: openaiserver.Message{Text: strings.Repeat("word ", words), Delta: 5, Pace: 50 * time.Millisecond}}
}

func stateOf(t *testing.T, terminal *os.File) *term.State {
	t.Helper()
	state, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// elicitor is an MCP server whose tool asks the person something.
func elicitor(t *testing.T) string {
	server := mcp.NewServer(&mcp.Implementation{Name: "elicitor", Version: "1"}, nil)
	type none struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "book", Description: "Book a seat."},
		func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
				Message: "Which seat?",
				RequestedSchema: map[string]any{"type": "object", "required": []string{"row"}, "properties": map[string]any{
					"row":    map[string]any{"type": "integer", "minimum": 1},
					"window": map[string]any{"type": "boolean", "default": true},
				}},
			})
			if err != nil {
				return nil, nil, err
			}
			return nil, map[string]any{"action": answer.Action, "content": answer.Content}, nil
		})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(listener.Close)
	return "[mcp.elicitor]\ntransport = \"http\"\nurl = \"" + listener.URL + "\"\nprotocol = \"2025-11-25\"\n"
}

// The terminal sends Ctrl-C to all processes of the group; who ends is decided
// here all the same.
func TestCtrlCEndsTheDemonstration(t *testing.T) {
	t.Parallel()
	x := run{}.onTerminal(t, "demo")
	x.expect("I'll look at both lists")
	x.types("\x03")
	shown := x.ends(exit.Failed)
	contains(t, "the screen", shown, "stopped: interrupt")
}
