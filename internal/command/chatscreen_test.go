// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/internal/testing/screen"
	"github.com/creack/pty"
)

// conversation is a chat on a terminal whose screen can be read.
type conversation struct {
	*screen.Terminal
	t *testing.T
}

// chats starts a chat on a terminal.
func (r run) chats(t *testing.T, cols, rows int, args ...string) conversation {
	t.Helper()
	return conversation{screen.Start(t, r.command(t.Context(), t, append([]string{"chat"}, args...)...), cols, rows), t}
}

// isPrompt reports whether the cursor is at the prompt for a message.
func isPrompt(e *screen.Emulator) bool {
	row, _, visible := e.Cursor()
	return visible && strings.HasPrefix(e.Line(row), ">")
}

// prompt waits until a message is waited for.
func (c conversation) prompt() {
	c.t.Helper()
	c.Wait("the prompt", isPrompt)
}

// says sends a message.
func (c conversation) says(text string) {
	c.t.Helper()
	send(c.Terminal, text)
}

// send sends a message when one is waited for.
func send(x *screen.Terminal, text string) {
	x.Wait("the prompt", isPrompt)
	echo := screen.Flat("> " + text)
	before := x.Count(echo)
	x.Type(text + screen.Enter)
	x.Wait("the message, sent", func(e *screen.Emulator) bool {
		row, _, visible := e.Cursor()
		input := strings.TrimSpace(e.Line(row))
		return strings.Count(screen.Flat(e.All()), echo) > before && (!visible || input == "" || input == ">" || input == "·")
	})
}

// chooses answers a question with a choice.
func (c conversation) chooses(key, label string) {
	c.t.Helper()
	c.See(key + " " + label)
	c.Type(key)
	c.See("→ " + label + ": Enter confirms")
	c.Type(screen.Enter)
}

// leaves ends the chat.
func (c conversation) leaves() {
	c.t.Helper()
	c.says("/quit")
	c.ends(exit.Done)
}

// ends waits for the end of the chat.
func (c conversation) ends(want exit.Status) {
	c.t.Helper()
	if got := c.Ends(); got != int(want) {
		c.t.Errorf("exit status %d, want %d:\n%s", got, want, c.All())
	}
	noProcessLeft(c.t)
}

// askWrites is a rule that asks before calls that may change something.
const askWrites = "[[approval.rules]]\naction = \"ask\"\nread_only = false\n"

func TestChatAsksForApproval(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		says("I **pack**.", calls("satchel__pack", `{"items":["hat"]}`), calls("atlas__weather", `{"city":"Oslo"}`)),
		says("Packed."),
		says("", calls("satchel__pack", `{"items":["anvil"]}`)),
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"too heavy"}}, Reply: openaiserver.Message{Text: "No anvil then."}},
	), atlas(0), satchel(0), askWrites)
	x := run{}.chats(t, 80, 24, "--config", path)
	x.prompt()
	x.See("5 tools of 2 servers.")
	x.says("Pack a hat.")
	x.See("I pack.", `["hat"]`, "run it?", "y once")
	x.chooses("y", "once")
	x.See("in the satchel: hat", "Packed.")
	x.says("And an anvil.")
	x.See("y once")
	x.Type("d")
	x.See("why not?")
	x.Type("too heavy" + screen.Enter)
	x.See("DENIED", "No anvil then.")
	x.says("/tools")
	x.See("satchel__unpack")
	x.says("/nonsense")
	x.See("/help")
	x.leaves()
	for text, want := range map[string]int{
		"in the satchel: hat": 1, "I pack.": 1, "Packed.": 1, "✓ atlas__weather": 1, "> And an anvil.": 1, "DENIED": 1, "→ once": 1,
	} {
		if got := x.Count(text); got != want {
			t.Errorf("%q is shown %d times, not %d:\n%s", text, got, want, x.All())
		}
	}
}

// What was typed or pasted before a question was shown does not answer it: neither an
// approval nor a form. It stays in the input.
func TestWhatWasTypedBeforeAQuestionDoesNotAnswerIt(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		openaiserver.Step{Reply: openaiserver.Message{
			Text: strings.Repeat("word ", 20), Delta: 5, Pace: 20 * time.Millisecond,
			Calls: []openaiserver.Call{calls("satchel__pack", `{"items":["hat"]}`)},
		}},
		says("Not packed."),
		says("", calls("elicitor__book", `{}`)), says("Booked."),
	), elicitor(t), satchel(0), "[[approval.rules]]\naction = \"ask\"\ntools = [\"pack\"]\n", allows)
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Pack a hat.")
	x.See("word word")
	x.Type("y\ry\ryes\ry")
	x.Paste("y\ny\n")
	x.See("y once")
	x.Type("yes, all of it\r") // somebody goes on after a pause
	x.See("yes, all of it")
	x.See("y once")
	x.Type("dtoo warm\r")
	x.See("DENIED", "Not packed.", "> yyyesyy", "yes, all of it")
	x.Type(strings.Repeat(screen.Ctrl('u')+screen.Backspace, 20))
	x.says("Book.")
	x.Type("f7\rs\r")
	x.See("f fill in the form")
	x.Type("f")
	x.See("row (required)")
	x.Type("3\r")
	x.See("> yes")
	x.Type("\r")
	x.See("row: 3", "s send")
	x.chooses("s", "send")
	x.See("Booked.", "> f7s")
	x.Type(screen.Ctrl('u'))
	x.leaves()
	if all := x.All(); strings.Contains(all, "in the satchel") || strings.Contains(all, "row: 7") {
		t.Errorf("it was answered:\n%s", all)
	}
}

// Text that is typed or pasted while an answer streams stays in the input, and is sent as
// one message when the person says so.
func TestATextIsOneMessage(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, slowly(40), openaiserver.Step{
		Expect: openaiserver.Expect{Contains: []string{"explain: one\nFile two\nthree\nand four"}}, Reply: openaiserver.Message{Text: "It was one."},
	}), atlas(0))
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Talk.")
	x.See("word word")
	x.Type("explain: ")
	x.Paste("one\nFile two\nthree")
	x.Type("\\\rand four")
	x.See("· explain: one", "File two", "and four")
	x.See("> explain: one") // it can be sent
	x.Type(screen.Enter)
	x.See("It was one.")
	x.prompt()
	x.Type(screen.Up)
	x.See("> explain: one")
	x.Type(screen.Ctrl('c'))
	x.See("Ctrl-C again leaves.")
	x.leaves()
}

// A chat that starts at the top of a window leaves its text there once: tmux keeps copies of
// what is erased from the first cell on. Rows of the view that are gone are nowhere.
func TestNothingIsLeftInTheScrollback(t *testing.T) {
	t.Parallel()
	for _, cols := range []int{40, 80, 120} {
		path := file(t, model(t, says("I **pack**.", calls("satchel__pack", `{"items":["hat"]}`)), says("Packed.")), satchel(0), askWrites)
		x := run{}.chats(t, cols, 24, "--history", "none", "--config", path)
		x.See("3 tools of 1 server.")
		x.Type("/" + screen.Tab)
		x.See("/resume")
		x.Type(screen.Ctrl('u'))
		x.Gone("/resume")
		x.says("Pack.")
		x.chooses("y", "once")
		x.See("Packed.")
		x.leaves()
		for text, want := range map[string]int{
			"Talking with": 1, "3 tools of 1 server.": 1, "/resume": 0, "> Pack.": 1, "I pack.": 1, "? The model wants": 1,
			"run it?": 0, "confirms": 0, "→ once": 1, "Packed.": 1,
			"starting: satchel": 0, "> /quit": 1,
		} {
			if got := x.Count(text); got != want {
				t.Errorf("at %d columns, %q is shown %d times, not %d:\n%s", cols, text, got, want, x.All())
			}
		}
	}
}

func TestCtrlCCancelsTheTurnAndTwiceLeaves(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, slowly(1000)), atlas(0))
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Talk.")
	x.See("word word")
	x.Type(screen.Ctrl('c'))
	x.See("Cancelled.")
	x.says("Again.")
	x.Wait("another answer", func(e *screen.Emulator) bool { return strings.Count(screen.Flat(e.All()), "word word") > 1 })
	x.Type(screen.Ctrl('c'))
	x.Wait("another cancellation", func(e *screen.Emulator) bool { return strings.Count(e.All(), "Cancelled.") == 2 && isPrompt(e) })
	x.Type(screen.Ctrl('c'))
	x.ends(exit.Done)
}

// Ctrl-C that clears a text does not leave, although one has cancelled the turn before. The text is in the history.
func TestCtrlCClearsTheInput(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, slowly(1000)), atlas(0))
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Talk.")
	x.See("word word")
	x.Type(screen.Ctrl('c'))
	x.See("Cancelled. Ctrl-C again leaves.")
	x.prompt()
	x.Type("abc")
	x.See("> abc")
	x.Type(screen.Ctrl('c'))
	x.Wait("the hint", func(e *screen.Emulator) bool {
		return strings.Count(screen.Flat(e.All()), "Ctrl-C again leaves.") == 2 && isPrompt(e)
	})
	x.Type(screen.Up)
	x.See("> abc")
	x.Type(screen.Ctrl('c'))
	x.Wait("another hint", func(e *screen.Emulator) bool {
		return strings.Count(screen.Flat(e.All()), "Ctrl-C again leaves.") == 3 && isPrompt(e)
	})
	x.Type(screen.Ctrl('c'))
	x.ends(exit.Done)
}

func TestCtrlCAnswersAQuestion(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`))), atlas(0), "[approval]\ndefault = \"ask\"\n")
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Oslo?")
	x.See("run it?")
	x.Type(screen.Ctrl('c'))
	x.See("Cancelled.")
	x.prompt()
	x.Type(screen.Ctrl('d'))
	x.ends(exit.Done)
}

func TestOffered(t *testing.T) {
	t.Parallel()
	for want, n := range map[string][2]int{
		"No tools.": {0, 0}, "1 tool of 1 server.": {1, 1}, "2 tools of 1 server.": {2, 1}, "5 tools of 2 servers.": {5, 2},
	} {
		if got := offered(n[0], n[1]); got != want {
			t.Errorf("%d tools of %d servers: %q, want %q", n[0], n[1], got, want)
		}
	}
}

// A server that cannot be connected has one line, however often it is tried.
func TestChatTellsOnceWhichServerCannotBeConnected(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello."), says("Hello again.")), atlas(0), broken)
	x := run{}.chats(t, 80, 24, "--config", path)
	x.See("2 tools of 1 server.", "away: broken")
	x.says("Hi.")
	x.See("Hello.")
	x.says("Hi again.")
	x.See("Hello again.")
	all := screen.Flat(x.All())
	contains(t, "the screen", all, `✗ broken: cannot connect: connecting: server "broken" exited: exit status 3; stderr: no licence`)
	if times := strings.Count(all, "no licence"); times != 1 || strings.Contains(all, "WARN") {
		t.Errorf("the server is reported %d times:\n%s", times, all)
	}
	x.leaves()
}

// Ctrl-Z gives the terminal to the shell, which continues the chat below its own output.
func TestCtrlZ(t *testing.T) {
	t.Parallel()
	cmd := run{}.command(t.Context(), t, "chat", "--config", file(t, model(t)))
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	cmd.Path, cmd.Args = shell, append([]string{"sh", "-c", `set -m; "$@"; echo "the shell has it"; fg`, "sh", cmd.Path}, cmd.Args[1:]...)
	x := conversation{screen.Start(t, cmd, 80, 24), t}
	x.prompt()
	x.Type("draft")
	x.See("> draft")
	x.Type(screen.Ctrl('z'))
	x.Wait("the draft below the shell", func(e *screen.Emulator) bool {
		_, below, _ := strings.Cut(e.Screen(), "the shell has it")
		return strings.Contains(below, "> draft") && isPrompt(e)
	})
	x.Type(screen.Ctrl('u'))
	x.leaves()
}

// Ctrl-Z has no effect where no shell can continue the chat, such as in a window of its own.
func TestCtrlZWithoutAShell(t *testing.T) {
	t.Parallel()
	x := run{}.chats(t, 80, 24, "--config", file(t, model(t, says("Hello."))))
	x.prompt()
	x.Type(screen.Ctrl('z'))
	x.See("Ctrl-Z has no effect here")
	x.says("Hi.")
	x.See("Hello.")
	x.leaves()
}

func TestCtrlCAtThePrompt(t *testing.T) {
	t.Parallel()
	x := run{}.chats(t, 80, 24, "--config", file(t, model(t)))
	x.prompt()
	x.Type("half a mess" + screen.Ctrl('c'))
	x.See("Ctrl-C again leaves.")
	x.Gone("half a mess")
	x.prompt()
	x.Type(screen.Ctrl('c'))
	x.ends(exit.Done)
}

// The first cancels, the second leaves, whether or not the turn is over by then.
func TestCtrlCTwiceLeavesDuringATurn(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("atlas__weather", `{"city":"Quito"}`))), atlas(time.Minute))
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Oslo?")
	x.See("Quito") // the call, and not that the model writes it
	x.Type(screen.Ctrl('c'))
	x.See("CANCELED") // the turn still has to be brought to its end
	x.Type(screen.Ctrl('c'))
	x.ends(exit.Done)
}

func TestTermEndsAChatAndRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	fresh, other, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	defer other.Close()
	x := run{}.onTerminal(t, "chat", "--config", file(t, model(t), atlas(0)))
	x.expect("tools of 1 server.")
	x.cmd.Process.Signal(os.Interrupt) // from elsewhere: like Ctrl-C
	x.expect("Ctrl-C again leaves.")
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

func TestChatAnswersAServersForm(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 24}, {120, 40}} {
		path := file(t, model(t, says("", calls("elicitor__book", `{}`)), says("Booked."), says("", calls("elicitor__book", `{}`)),
			says("Not booked."), says("", calls("elicitor__book", `{}`)), says("Not booked either.")), elicitor(t), allows)
		x := run{}.chats(t, size[0], size[1], "--config", path)
		x.says("Book.")
		x.See("The server elicitor asks: Which", "seat?", "f fill in the form")
		x.Type("f")
		x.See("row (required)")
		x.Type("zero\r")
		x.See("is not a number")
		x.Type(strings.Repeat(screen.Backspace, 4) + "7\r")
		x.See("window", "> yes")
		x.Type("\r")
		x.See("row: 7", "window: yes", "s send")
		x.chooses("s", "send")
		x.See("Booked.")
		x.says("Book again.")
		x.See("f fill in the form")
		x.chooses("n", "decline")
		x.See("→ decline", "Not booked.")
		x.says("Book it.")
		x.See("f fill in the form")
		x.Type("f")
		x.See("row (required)")
		x.Type(screen.Escape)
		x.See("f fill in the form")
		x.chooses("x", "leave it unanswered")
		x.See("→ leave it unanswered", "Not booked either.")
		x.prompt()
		x.Type(screen.Ctrl('d'))
		x.ends(exit.Done)
	}
}

// A form can be answered line by line, too.
func TestPlainChatAnswersAServersForm(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("elicitor__book", `{}`)), says("Booked.")), elicitor(t), allows)
	o := run{stdin: "Book.\nzero\n7\n\n"}.consort(t, "chat", "--plain", "--config", path)
	contains(t, "the questions", o.stderr, "The server elicitor asks: Which seat?", "row: ", "not a number", "window [y/n] default yes: ")
	contains(t, "the answer", o.stdout, "Booked.")
}

// streamVar is the size of the answer of TestALongAnswerScrollsBy, in MB; a quarter if it is not set.
const streamVar = "CONSORT_TEST_STREAM_MB"

// maxMemory bounds the memory of a chat while a long answer scrolls by, in MB.
const maxMemory = 100

// A long answer scrolls by, and all of it is in the terminal's own scrollback, once and in
// order; keys that are pressed meanwhile are not lost. The size of the process stays
// bounded.
func TestALongAnswerScrollsBy(t *testing.T) {
	t.Parallel()
	if raced.Enabled {
		t.Skip("the race detector needs memory of its own")
	}
	megabytes, err := strconv.ParseFloat(cmp.Or(os.Getenv(streamVar), "0.25"), 64)
	if err != nil {
		t.Fatal(err)
	}
	size := int(megabytes * (1 << 20))
	var answer strings.Builder
	sections := 0
	for ; answer.Len() < size; sections++ {
		fmt.Fprintf(&answer, "## Section %d\n\nSome **bold** words, `code`, and a list:\n\n- one\n- two\n\n```go\nx := %d\n```\n\n", sections, sections)
	}
	answer.WriteString("That is all.")
	path := file(t, model(t, openaiserver.Step{Reply: openaiserver.Message{Text: answer.String(), Delta: 4096}}))
	x := run{env: []string{"GOGC=100"}}.chats(t, 80, 24, "--history", "none", "--config", path)
	x.says("Talk.")
	const typed = "typed while it streams"
	for i := range typed {
		x.Wait("more of the answer", func(e *screen.Emulator) bool { return e.Scrolled() > 1000*(i+1) })
		x.Type(typed[i : i+1])
	}
	for n := 0; n < sections; n += 1000 {
		x.Wait("more of the answer", func(e *screen.Emulator) bool { return e.Scrolled() > 9*n })
	}
	x.See("That is all.", "> "+typed)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.Process().Pid))
	if err == nil {
		for line := range strings.Lines(string(status)) {
			var kB int
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
				if t.Logf("%g MB of text: the process needed %d MB", megabytes, kB>>10); kB>>10 > maxMemory {
					t.Errorf("it should need at most %d MB", maxMemory)
				}
			}
		}
	}
	x.Type(screen.Ctrl('u'))
	x.leaves()
}
