// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/screen"
)

// plainly are the ways to ask for plain lines.
var plainly = map[string]struct {
	args []string
	env  []string
}{
	"--plain":    {args: []string{"--plain"}},
	"TERM=dumb":  {env: []string{"TERM=dumb"}},
	"ACCESSIBLE": {env: []string{"ACCESSIBLE=1"}},
}

// Plain lines say in words what goes on, and contain no control sequence. A paste is one
// message, and what was typed before a question does not answer it.
func TestPlainChat(t *testing.T) {
	t.Parallel()
	for name, way := range plainly {
		t.Run(name, func(t *testing.T) {
			asked, typed := make(chan struct{}), make(chan struct{})
			pack := openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
				close(asked)
				<-typed
				return openaiserver.Message{Reasoning: "Hm.", Calls: []openaiserver.Call{calls("satchel__pack", `{"items":["hat"]}`)}}
			})
			path := file(t, model(t,
				openaiserver.Step{
					Expect: openaiserver.Expect{Contains: []string{"explain: one\nFile two\nthree and more"}},
					Reply:  openaiserver.Message{Text: "Explained."},
				},
				openaiserver.Step{Reply: pack}, says("Not packed."),
				says("", calls("satchel__pack", `{"items":["hat"]}`)), says("Packed."),
			), satchel(0), "[[approval.rules]]\naction = \"ask\"\ntools = [\"pack\"]\n")
			x := run{env: way.env}.onScreen(t, 80, 40, append([]string{"chat", "--config", path}, way.args...)...)
			x.See("/help lists the commands.", ">")
			x.Type("explain: ")
			x.Paste("one\nFile two\nthree")
			x.Type(" and more\n")
			x.See("Explained.")
			x.Type("Pack a hat.\n")
			<-asked
			x.Type("y\nyes\ny") // the last without its end
			close(typed)
			x.See("run it?")
			x.Type("too warm\n")
			x.See("satchel__pack: failed after", "s: DENIED", "too warm", "Not packed.")
			x.Type("Pack it.\n")
			x.Wait("the second question", func(e *screen.Emulator) bool { return strings.Count(e.All(), "run it?") == 2 })
			x.Type("y\n")
			x.See("calling satchel__pack(", "satchel__pack: done in", "s: in the satchel: hat", "Packed.")
			x.Type("/quit\n")
			if status := x.Ends(); status != int(exit.Done) {
				t.Errorf("exit status %d", status)
			}
			if x.Count("the model is thinking") != 1 {
				t.Errorf("thinking:\n%s", x.All())
			}
			lacks(t, "the output", x.Raw(), "\x1b", "⠋", "✓")
			noProcessLeft(t)
		})
	}
}

// A line that the terminal has cut is not sent.
func TestPlainChatSendsNoCutLine(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Heard.")))
	x := run{}.onScreen(t, 80, 24, "chat", "--plain", "--config", path)
	x.See(">")
	x.Type(strings.Repeat("x", 5000) + "\n")
	x.SeeAnywhere("The text is not sent, because the terminal cuts lines of 4095 bytes and more.")
	x.Type("short\n")
	x.SeeAnywhere("Heard.")
	x.Type("/quit\n")
	x.Ends()
}

// A run says in words what goes on.
func TestPlainRun(t *testing.T) {
	t.Parallel()
	script := []openaiserver.Step{says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("It snows.")}
	for name, way := range plainly {
		x := run{env: way.env}.onScreen(t, 80, 24, append([]string{"run", "Oslo?", "--config", file(t, model(t, script...), atlas(0))}, way.args...)...)
		if status := x.Ends(); status != int(exit.Done) {
			t.Errorf("%s: exit status %d", name, status)
		}
		x.See("calling atlas__weather(city: Oslo)", "atlas__weather: done in", "s: Oslo: -3 °C, snow", "It snows.")
		lacks(t, name, x.Raw(), "\x1b", "✓")
	}
}
