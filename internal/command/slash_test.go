// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/screen"
)

// onScreen starts the command on a terminal whose screen the test reads.
func (r run) onScreen(t *testing.T, cols, rows int, args ...string) *screen.Terminal {
	t.Helper()
	return screen.Start(t, r.command(t.Context(), t, args...), cols, rows)
}

// echo is a model that says its name, the last message, and how many came before it. To
// a message with the word weather it calls a tool first.
func echo(t *testing.T) string {
	t.Helper()
	usage := &openaiserver.Usage{PromptTokens: 1000, CompletionTokens: 20}
	reply := openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case strings.Contains(last.Text, `"from":`):
			return openaiserver.Message{Text: "The summary.", Usage: &openaiserver.Usage{PromptTokens: 900, CompletionTokens: 3}}
		case last.Role == "user" && strings.Contains(last.Text, "weather"):
			return openaiserver.Message{Calls: []openaiserver.Call{calls("atlas__weather", `{"city":"Oslo"}`)}, Usage: usage}
		}
		return openaiserver.Message{
			Text:  fmt.Sprintf("%s heard <%s> after %d.", r.Model, last.Text, len(r.Messages)-1),
			Usage: usage,
		}
	})
	steps := make([]openaiserver.Step, 30)
	for i := range steps {
		steps[i].Reply = reply
	}
	return model(t, steps...)
}

// idShown returns the ID in the last note about a conversation.
func idShown(t *testing.T, x *screen.Terminal, before string) string {
	t.Helper()
	found := regexp.MustCompile(regexp.QuoteMeta(before)+`\s+(\d{8}-[a-z0-9]+)`).FindAllStringSubmatch(x.All(), -1)
	if len(found) == 0 {
		t.Fatalf("there is no ID after %q:\n%s", before, x.All())
	}
	return found[len(found)-1][1]
}

// atPrompt reports whether the cursor is at an empty prompt for a message.
func atPrompt(e *screen.Emulator) bool {
	row, _, visible := e.Cursor()
	return visible && e.Line(row) == ">"
}

// Each command does what its help says when it is typed.
func TestSlashCommands(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := file(t, echo(t), atlas(0), historyTable, "[[model.fallback]]\nname = \"second\"\nbase_url = \"http://127.0.0.1:1/v1\"\n",
		"[compaction]\nkeep = 1\n", "[budgets]\ncurrency = \"EUR\"\ncaps = [{scope = \"conversation\", tokens = 100000}]\n",
		"[budgets.prices.scripted]\ninput = \"10\"\noutput = \"50\"\n")
	x := run{dir: folder, env: []string{"NO_COLOR=1"}}.onScreen(t, 100, 50, "chat", "--config", path)
	types := func(line string, shown ...string) {
		t.Helper()
		x.Wait("the prompt", atPrompt)
		echo := "> " + line[:min(len(line), 30)]
		before := x.Count(echo)
		x.Type(line + "\n")
		if line == "/quit" {
			return
		}
		x.Wait("the prompt after "+line, func(e *screen.Emulator) bool {
			return atPrompt(e) && strings.Count(screen.Flat(e.All()), screen.Flat(echo)) > before
		})
		for _, text := range shown {
			x.SeeAnywhere(text)
		}
	}
	x.See("/help lists the commands")
	types("/help", "/compact", "summarise the older part", "//text", "send /text as a message")
	types("/model third", "The model is third until the chat ends.", "your next message shows whether the server has it")
	types("/model scripted", "The model is scripted until the chat ends.")
	types("/show", "no tool has been called yet")
	types("/retry", "you have not sent a message yet")
	types("/copy", "there is no answer to copy yet")
	types("/cost", "The model has not been asked yet.", "left for this conversation: 100,000 of 100,000 tokens")
	types("hello"+strings.Repeat(" there", 60), "there> after 0.")
	types("the weather?", "after 4.")
	types("/history", "1 user hello there", "4 assistant", "3 user the weather?")
	types("/show", "5 invocation atlas__weather", `"city": "Oslo"`, "Oslo: -3 °C, snow")
	types("/show 1", "1 user")
	types("/show 99", "expected the number of an entry, from 1 to 8")
	types("/cost", "MODEL", "scripted", "3,000", "0.033", "left for this conversation: 96,940")
	types("/copy", "is sent to the clipboard")
	if got := x.Clipboard(); !strings.Contains(got, "heard <") || !strings.Contains(got, "Oslo") {
		t.Errorf("the clipboard has %q", got)
	}
	types("/export talk.md", "The conversation is in talk.md.")
	types("/export talk.md", "talk.md exists already")
	types("/export talk.doc", "expected .md, .html or .jsonl")
	if text, err := os.ReadFile(filepath.Join(folder, "talk.md")); err != nil || !strings.Contains(string(text), "the weather?") {
		t.Errorf("exported: %v, %s", err, text)
	}
	types("/servers", "atlas ready for", "1 calls, 0 failed")
	types("/tools", "atlas__local_time")
	types("/save Two towns", "The conversation is stored as")
	first := idShown(t, x, "stored as")
	types("/compact", "The model gets a summary of everything before the last exchanges")
	types("/model", "configured: scripted, second", "/model NAME changes the model until the chat ends")
	types("/model third", "The model is third until the chat ends.")
	x.See("third ·") // the status
	types("who is it?", "third heard <who is it?>")
	types("/retry", "This is a copy up to that message.", "/resume "+first)
	x.SeeAnywhere("third heard <who is it?>")
	types("/edit and now?", "third heard <and now?>")
	types("/fork 2", "This is a copy of the first 2 entries.")
	types("/history", "2 assistant scripted heard")
	types("again", "third heard <again> after 2.")
	types("/new", "This is a new conversation.")
	types("a new one", "third heard <a new one> after 0.")
	types("/resume", "Two towns", "/resume ID continues one of them.")
	types("/resume "+first, "Continuing conversation "+first+`, "Two towns"`)
	types("/resume nothing", "there is no conversation nothing")
	types("/ect/hosts what is this", "there is no command /ect/hosts", "//ect/hosts …")
	types("/hstory", "Did you mean /history?")
	types("/quit now", "/quit takes no argument")
	types("//etc/hosts what is this", "heard </etc/hosts what is this>")
	types("/quit")
	if status := x.Ends(); status != int(exit.Done) {
		t.Errorf("exit status %d", status)
	}
	x.SeeAnywhere("This was conversation " + first)
	store := open(t, path)
	if infos := all(t, store); len(infos) != 5 { // the first, of /retry, /edit, /fork, /new
		t.Errorf("%d conversations: %+v", len(infos), infos)
	}
	entries, err := history.From(t.Context(), store, first, 0)
	// The first conversation has lost nothing and got nothing from the copies.
	want := "user assistant user assistant invocation intent result assistant document user assistant user assistant"
	if err != nil || kindsOf(entries) != want {
		t.Errorf("%v, %s", err, kindsOf(entries))
	}
	noProcessLeft(t)
}

func kindsOf(entries []canister.Canister) string {
	var kinds []string
	for _, entry := range entries {
		kinds = append(kinds, string(entry.Kind()))
	}
	return strings.Join(kinds, " ")
}

// What is not stored can be copied too, and /save stores it.
func TestSlashCommandsWithoutStore(t *testing.T) {
	t.Parallel()
	r := run{stdin: strings.Join([]string{"one", "/retry", "/edit two", "/fork 1", "/resume", "/resume", "/save Kept after all", "three", "/resume"}, "\n")}
	o := r.consort(t, "chat", "--history", "none", "--config", file(t, echo(t))).expect(t, exit.Failed)
	contains(t, "standard output", o.stdout, "heard <one> after 0.", "heard <two> after 0.", "heard <three> after 2.")
	if n := strings.Count(o.stdout, "heard <one> after 0."); n != 2 {
		t.Errorf("/retry: %d answers", n)
	}
	contains(
		t, "standard error", o.stderr, "cannot be continued, because conversations are not stored", "/save stores this one",
		"The conversation is stored as",
	)
	store, err := sqlite.Open(filepath.Join(placeOf(t), "consort", "history.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	infos := all(t, store)
	if len(infos) != 1 || infos[0].Title != "Kept after all" || infos[0].Length != 4 {
		t.Errorf("%+v", infos)
	}
}

// The hints name an ID as /resume takes it, which is not quoted.
func TestHintsOfResume(t *testing.T) {
	t.Parallel()
	path := file(t, echo(t), historyTable)
	if err := open(t, path).Append(t.Context(), "it's my  talk", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hello")},
		canister.Assistant{Head: canister.Head{ID: "m"}, Content: canister.Texts("hello")}); err != nil {
		t.Fatal(err)
	}
	r := run{stdin: strings.Join([]string{"/save Mine", "/fork 1", "/resume it's my  talk"}, "\n")}
	o := r.consort(t, "chat", "--conversation", "it's my  talk", "--config", path)
	contains(t, "standard error", o.stderr, "stored as it's my  talk; /resume it's my  talk returns to it.", "unchanged; /resume it's my  talk returns to it.",
		"Continuing conversation "+display.Word("it's my  talk")+", \"Mine\"")
}

// A turn that broke off is continued with /resume, without leaving the chat.
func TestResumeInChat(t *testing.T) {
	t.Parallel()
	path := file(t, echo(t), atlas(0), historyTable)
	store := open(t, path)
	for _, entry := range []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("the weather?")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "atlas__weather", Arguments: `{"city":"Oslo"}`},
	} {
		info, _ := store.Info(t.Context(), "broken")
		if err := store.Append(t.Context(), "broken", info.Length, entry); err != nil {
			t.Fatal(err)
		}
	}
	o := run{stdin: "/resume broken\n/resume\n"}.consort(t, "chat", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Calls of tools without a result: 1.", "type /resume", "atlas__weather")
	contains(t, "standard output", o.stdout, "heard <Oslo: -3 °C, snow")
}

// The guide and the help list all commands, with the same words.
func TestGuideHasTheCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guides/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chatcommands.All() {
		row := "| `" + strings.TrimSpace(c.Name+" "+c.Arguments) + "` | " + c.Help + " |\n"
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/guides/chat.md lacks the row %s", row)
		}
	}
}
