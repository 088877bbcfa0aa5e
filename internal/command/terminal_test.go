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
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
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
	script := []openaiserver.Step{says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("It snows.")}
	shown := run{}.onTerminal(t, "run", "Oslo?", "--config", file(t, model(t, script...), atlas(200*time.Millisecond))).ends(exit.Done)
	for _, part := range []string{`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] atlas__weather`, "\x1b\\[3.m✓\x1b", `0\.\d\ds`, "\x1b\\[1F\x1b\\[J", "It snows.\r\n$"} {
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
	path := file(t, model(t, says("Title: \x1b]0;owned\a."),
		says("done")), atlas(0))
	shown := run{}.onTerminal(t, "run", "hi", "--config", path).ends(exit.Done)
	lacks(t, "the screen", shown, "\x1b]0;", "\a")
}

// What cannot be seen is made visible wherever people read or approve.
func TestATerminalShowsWhatCannotBeSeen(t *testing.T) {
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
	x := plain.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Pack.\r")
	x.expect(`\ue000`)
	x.expect("run it?")
	x.types("y\r")
	x.expect("Packed.")
	x.expect("> ")
	x.types("/history\r")
	x.expect("> ")
	x.types("/quit\r")
	lacksUnseen(t, "chat", strings.ReplaceAll(x.ends(exit.Done), "\a", ""))
}

func TestChatAsksForApproval(t *testing.T) {
	path := file(t, model(t,
		says("I pack.", calls("satchel__pack", `{"items":["hat"]}`), calls("atlas__weather", `{"city":"Oslo"}`)),
		says("Packed."),
		says("", calls("satchel__pack", `{"items":["anvil"]}`)),
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"too heavy"}}, Reply: openaiserver.Message{Text: "No anvil then."}},
	), atlas(0), satchel(0), "[[approval.rules]]\naction = \"ask\"\nread_only = false\n")
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Pack a hat.\r")
	x.expect("pack")
	x.expect(`"hat"`)
	x.expect("run it?")
	x.types("y\r")
	x.expect("in the satchel: hat")
	x.expect("Packed.")
	x.expect("> ")
	x.types("And an anvil.\r")
	x.expect("run it?")
	x.types("too heavy\r")
	x.expect("DENIED")
	x.expect("No anvil then.")
	x.expect("> ")
	x.types("/history\r")
	x.expect("satchel__pack(")
	x.expect("No anvil then.")
	x.types("/tools\r")
	x.expect("atlas__weather")
	x.types("/nonsense\r")
	x.expect("/help")
	x.types("/quit\r")
	x.ends(exit.Done)
}

// What was typed before a question was shown does not answer it: neither an
// approval nor a form.
func TestWhatWasTypedBeforeAQuestionDoesNotAnswerIt(t *testing.T) {
	path := file(t, model(t,
		says("", calls("satchel__pack", `{"items":["hat"]}`)), says("Not packed."),
		says("", calls("elicitor__book", `{}`)), says("Booked."),
	), elicitor(t), satchel(0), "[[approval.rules]]\naction = \"ask\"\ntools = [\"pack\"]\n", allows)
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.types("Pack a hat.\ry\ryes\ry") // the last without its end
	x.expect("run it?")
	x.types("too warm\r")
	x.expect("DENIED")
	x.expect("Not packed.")
	x.types("Book.\r7\r7\r")
	x.expect("row: ")
	x.types("3\r")
	x.expect("window")
	x.expect(": ")
	x.types("\r")
	x.expect(`"row":3`)
	x.expect("Booked.")
	x.types("/quit\r")
	lacks(t, "the screen", x.ends(exit.Done), "in the satchel")
}

// slowly is an answer that takes long enough to be interrupted.
func slowly(words int) openaiserver.Step {
	return openaiserver.Step{Reply: openaiserver.Message{Text: strings.Repeat("word ", words), Delta: 5, Pace: 50 * time.Millisecond}}
}

func TestCtrlCCancelsTheTurnAndTwiceLeaves(t *testing.T) {
	path := file(t, model(t, slowly(1000)), atlas(0))
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Talk.\r")
	x.expect("word word")
	x.types("\x03")
	x.expect("Cancelled.")
	x.expect("> ")
	x.types("Again.\r")
	x.expect("word word")
	x.types("\x03")
	x.expect("Cancelled.")
	x.expect("> ")
	x.types("\x03")
	x.ends(exit.Done)
}

func TestCtrlCAnswersAQuestion(t *testing.T) {
	path := file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`))), atlas(0), "[approval]\ndefault = \"ask\"\n")
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Oslo?\r")
	x.expect("run it?")
	x.types("\x03")
	x.expect("Cancelled.")
	x.expect("> ")
	x.types("\x04")
	x.ends(exit.Done)
}

func TestCtrlCAtThePrompt(t *testing.T) {
	x := run{}.onTerminal(t, "chat", "--config", file(t, model(t)))
	x.expect("> ")
	x.types("half a mess\x03")
	x.expect("Ctrl-C again leaves.")
	x.expect("> ")
	x.types("\x03")
	x.ends(exit.Done)
}

func TestTermEndsAChatAndRestoresTheTerminal(t *testing.T) {
	fresh, other, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	defer other.Close()
	x := run{}.onTerminal(t, "chat", "--config", file(t, model(t), atlas(0)))
	x.expect("> ")
	x.types("/tools\r")
	x.expect("atlas__weather")
	x.expect("> ")
	x.cmd.Process.Signal(os.Interrupt) // from elsewhere: like Ctrl-C
	x.expect("Ctrl-C again leaves.")
	x.expect("> ")
	if reflect.DeepEqual(stateOf(t, x.pty), stateOf(t, fresh)) {
		t.Error("the terminal is not in raw mode at the prompt")
	}
	x.cmd.Process.Signal(sigterm)
	x.cmd.Wait()
	if !reflect.DeepEqual(stateOf(t, x.pty), stateOf(t, fresh)) {
		t.Error("the terminal is not as it was before")
	}
	shown := x.ends(exit.Failed)
	contains(t, "the screen", shown, "stopped")
}

func stateOf(t *testing.T, terminal *os.File) *term.State {
	t.Helper()
	state, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// The first cancels, the second leaves, whether or not the turn is over by then.
func TestCtrlCTwiceLeavesDuringATurn(t *testing.T) {
	path := file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`))), atlas(time.Minute))
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Oslo?\r")
	x.expect("atlas__weather")
	x.types("\x03")
	x.expect("CANCELED") // the turn still has to be brought to its end
	x.types("\x03")
	x.ends(exit.Done)
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

func TestChatAnswersAServersForm(t *testing.T) {
	path := file(t, model(t, says("", calls("elicitor__book", `{}`)), says("Booked."), says("", calls("elicitor__book", `{}`)),
		says("Not booked."), says("", calls("elicitor__book", `{}`)), says("Not booked either.")), elicitor(t), allows)
	x := run{}.onTerminal(t, "chat", "--config", path)
	x.expect("> ")
	x.types("Book.\r")
	x.expect("Which seat?")
	x.expect("row: ")
	x.types("zero\r")
	x.expect("not a number")
	x.expect("row: ")
	x.types("7\r")
	x.expect("window [y/n] default true: ")
	x.types("\r")
	x.expect(`"row":7`)
	x.expect(`"window":true`)
	x.expect("Booked.")
	x.expect("> ")
	x.types("Book.\r")
	x.expect("row: ")
	x.types("/no\r")
	x.expect("decline")
	x.expect("> ")
	x.types("Book.\r")
	for range 5 {
		x.expect("row: ")
		x.types("zero\r")
	}
	x.expect("None of 5 answers is valid")
	x.expect("cancel")
	x.expect("> ")
	x.types("\x04")
	x.ends(exit.Done)
}

// The terminal sends Ctrl-C to all processes of the group; who ends is decided
// here all the same.
func TestCtrlCEndsTheDemonstration(t *testing.T) {
	x := run{}.onTerminal(t, "demo")
	x.expect("I'll look at both lists")
	x.types("\x03")
	shown := x.ends(exit.Failed)
	contains(t, "the screen", shown, "stopped: interrupt")
}
