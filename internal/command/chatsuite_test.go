// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/screen"
)

// pasted returns a text whose lines could be messages, commands or answers.
func pasted(moment string) string { return "y\n/quit\nyes\n  indented\n\npasted " + moment }

// receives is a step that expects a paste as one message.
func receives(moment string) openaiserver.Step {
	return openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{pasted(moment)}}, Reply: openaiserver.Message{Text: "Got it " + moment + "."}}
}

// sends waits until the input holds a paste that can be sent, and sends it.
func (c conversation) sends(moment string) {
	c.t.Helper()
	c.Wait("the paste "+moment, func(e *screen.Emulator) bool {
		rows := strings.Split(e.Screen(), "\n")
		for i := len(rows) - 1; i >= 0; i-- {
			if strings.HasPrefix(rows[i], ">") || strings.HasPrefix(rows[i], "·") { // the input begins there
				return rows[i][0] == '>' && strings.Contains(strings.Join(rows[i:], "\n"), "\n  pasted "+moment)
			}
		}
		return false
	})
	if c.Count("Got it "+moment) > 0 {
		c.t.Errorf("it was sent before Enter:\n%s", c.All())
	}
	c.Type(screen.Enter)
	c.See("Got it " + moment + ".")
}

// Whenever a text is pasted, it is one message, which Enter sends. It answers no question.
func TestPasteAtEveryMoment(t *testing.T) {
	t.Parallel()
	pack := openaiserver.Message{Text: "I pack.", Calls: []openaiserver.Call{calls("satchel__pack", `{"items":["hat"]}`)}}
	asked, open := make(chan struct{}), make(chan struct{})
	waits := openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		close(asked)
		<-open
		return pack
	})
	x := run{}.chats(t, 80, 24, "--history", "none", "--config", file(t, model(t,
		receives("at the start"),
		receives("after typed words"),
		openaiserver.Step{Reply: waits}, says("Packed once."), receives("before the first token"),
		openaiserver.Step{Reply: pack}, says("Packed twice."), receives("at a question"),
		receives("after a resize"),
	), satchel(0), askWrites))
	x.Wait("bracketed paste", func(e *screen.Emulator) bool { return e.Mode(2004) })
	x.Paste(pasted("at the start"))
	x.sends("at the start")

	x.prompt()
	x.Type("so: ")
	x.Paste(pasted("after typed words"))
	x.sends("after typed words")

	x.says("Pack.")
	<-asked
	x.Paste(pasted("before the first token"))
	x.See("· y", "pasted before the first token")
	close(open)
	x.chooses("y", "once")
	x.See("Packed once.")
	x.sends("before the first token")

	x.says("Pack again.")
	x.See("y once")
	x.Paste(pasted("at a question"))
	x.See("pasted at a question")
	x.chooses("y", "once")
	x.See("Packed twice.")
	x.sends("at a question")

	x.prompt()
	x.Resize(50, 20)
	x.Paste(pasted("after a resize"))
	x.sends("after a resize")
	x.leaves()
}

// varying are the parts of a screen that differ from run to run.
var varying = regexp.MustCompile(`\d+\.\d+ ?s`)

// golden waits until the screen, with the lines above it, is that of a file.
func (c conversation) golden(name string) {
	c.t.Helper()
	path := filepath.Join("testdata", "chat", name)
	seen := func(all string) string { return strings.TrimRight(varying.ReplaceAllString(all, "…s"), "\n") + "\n" }
	if os.Getenv(screen.UpdateVar) != "" {
		time.Sleep(2 * time.Second) // until the screen stays as it is; a person looks at the file
		screen.Golden(c.t, path, seen(c.All()))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	got := ""
	defer func() {
		if c.t.Failed() {
			screen.Golden(c.t, path, got)
		}
	}()
	c.Wait("the screen of "+path, func(e *screen.Emulator) bool {
		got = seen(e.All())
		return got == string(want)
	})
}

// The screen of a conversation at three widths.
func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	const answer = "# Oslo\n\nIt **snows** in Oslo, and will do so for some time; take a warm hat and good boots with you.\n\n" +
		"- a hat\n- boots, *warm* ones\n\n```go\nfmt.Println(\"a long line of code that does not fit on a narrow screen\")\n```\n\n| day | sky |\n|---|---|\n| Monday | snow |\n"
	for _, cols := range []int{40, 80, 120} {
		path := file(t, model(t,
			says("", calls("atlas__weather", `{"city":"Oslo"}`)), says(answer),
			says("", calls("satchel__pack", `{"items":["hat","boots"]}`)), says("Packed."),
		), atlas(0), satchel(0), askWrites)
		x := run{env: []string{"NO_COLOR=1"}}.chats(t, cols, 40, "--history", "none", "--config", path)
		x.See("5 tools of 2 servers.")
		x.says("What is the weather in Oslo?")
		x.See("Monday", "snow")
		x.prompt()
		x.says("Pack for it.")
		x.See("y once")
		x.golden(fmt.Sprintf("question.%d.txt", cols))
		x.chooses("y", "once")
		x.See("Packed.")
		x.prompt()
		x.golden(fmt.Sprintf("conversation.%d.txt", cols))
		x.leaves()
	}
}
