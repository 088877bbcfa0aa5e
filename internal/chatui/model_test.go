// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/invoker"
)

// desk is a model without a program: the test sends its messages, and looks at its view.
type desk struct {
	*model
	t          *testing.T
	lines      chan line
	interrupts int
}

func newDesk(t *testing.T, cols, rows int) *desk {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	d := &desk{t: t, lines: make(chan line, 1)}
	options := &Options{Screen: terminal.NewScreen(null, null), Interrupt: func() { d.interrupts++ }}
	d.model = newModel(options, newBacklog(), d.lines)
	d.model.style = rendering.Style{}
	d.Update(tea.WindowSizeMsg{Width: cols, Height: rows})
	d.drawn = true
	return d
}

// happens processes an item of the backlog.
func (d *desk) happens(item any) {
	d.t.Helper()
	d.backlog.put(item, 0)
	d.Update(arrived{})
}

// keys presses keys: names such as "enter", and otherwise text.
func (d *desk) keys(keys ...string) {
	d.t.Helper()
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace},
		"home": {Code: tea.KeyHome}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "space": {Code: ' ', Text: " "},
	}
	for _, key := range keys {
		if msg, ok := named[key]; ok {
			d.Update(msg)
		} else if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
			d.Update(tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl})
		} else {
			for _, r := range key {
				d.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

// paste pastes a text as a terminal reports it.
func (d *desk) paste(text string) {
	d.Update(tea.PasteStartMsg{})
	d.Update(tea.PasteMsg{Content: text})
	d.Update(tea.PasteEndMsg{})
}

// view returns the text of the view, and checks that it fits the window.
func (d *desk) view() string {
	d.t.Helper()
	text := ansi.Strip(d.View().Content)
	rows := strings.Split(text, "\n")
	if len(rows) > d.height-1 && d.height > 12 {
		d.t.Errorf("the view has %d rows of %d:\n%s", len(rows), d.height, text)
	}
	for _, row := range rows {
		if columns(row) >= d.width {
			d.t.Errorf("a row has %d of %d columns: %q", columns(row), d.width, row)
		}
	}
	return text
}

// shows fails the test unless the view contains the texts.
func (d *desk) shows(texts ...string) {
	d.t.Helper()
	view := strings.Join(strings.Fields(d.view()), " ")
	for _, text := range texts {
		if !strings.Contains(view, text) {
			d.t.Errorf("no %q in:\n%s", text, d.view())
		}
	}
}

// sent returns the message that was sent, if there is one.
func (d *desk) sent() (string, bool) {
	select {
	case l := <-d.lines:
		return l.text, l.err == nil
	default:
		return "", false
	}
}

// asked opens a question and returns the channel of its answer.
func (d *desk) asked(q *question) chan reply {
	d.t.Helper()
	q.answers = make(chan reply, 1)
	d.happens(opened{q})
	return q.answers
}

// rests lets the keyboard rest, while the question is on the screen.
func (d *desk) rests() {
	d.Update(rested{d.question, d.question.press})
	d.looks()
}

// looks lets what is on the screen stay there for a while.
func (d *desk) looks() {
	d.Update(looked{d.question, d.question.shown})
	d.Update(picked{d.question, d.question.press})
}

// confirms makes a choice.
func (d *desk) confirms(key string) {
	d.keys(key)
	d.looks()
	d.keys("enter")
}

// answers confirms a choice, which must be the answer then.
func (d *desk) answers(answers <-chan reply, key string) {
	d.t.Helper()
	d.confirms(key)
	select {
	case given := <-answers:
		if given.key != key || given.err != nil {
			d.t.Errorf("the answer is %+v, want %q", given, key)
		}
	default:
		d.t.Fatalf("%q is no answer in:\n%s", key, d.view())
	}
}

func text(lines int) func(rendering.Style) []string {
	return func(style rendering.Style) []string {
		var all []string
		for i := range lines {
			all = append(all, wrapAll(fmt.Sprintf("line %d of the question", i+1), style.Width)...)
		}
		return all
	}
}

var choices = []choice{{key: "y", label: "once", allows: true}, {key: "n", label: "no"}, {key: "d", label: "no, because…", reason: "why not? "}}

// A chat can be left in a window without a size.
func TestLeavingWithoutASize(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.Update(tea.WindowSizeMsg{})
	d.backlog.put(note{"not lost\n"}, 9)
	d.backlog.leave()
	if _, quits := d.process()().(tea.QuitMsg); !quits {
		t.Error("it does not end")
	}
	if items := d.backlog.take(100); len(items) != 2 {
		t.Errorf("left are %v", items)
	}
}

// Ctrl-C is the same key in all layouts of the keyboard.
func TestCtrlCInAnotherLayout(t *testing.T) {
	d := newDesk(t, 80, 24)
	if !d.View().KeyboardEnhancements.ReportAlternateKeys {
		t.Error("the terminal does not report the key of the standard layout")
	}
	d.Update(tea.KeyPressMsg{Code: 'с', BaseCode: 'c', Mod: tea.ModCtrl})
	if d.interrupts != 1 {
		t.Errorf("%d interrupts", d.interrupts)
	}
}

// No part of a secret is shown, in whatever pieces it arrives and wherever rows break.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "sk-0123456789-abcdefghij-0123456789-abcdefghij"
	d := newDesk(t, 40, 24)
	secrets := redact.NewGrowing(secret)
	d.options.Redact, d.options.RedactPart = secrets.Text, secrets.Part
	lacks := func(what string) {
		t.Helper()
		if all := ansi.Strip(strings.Join(d.paper.rows, "\n")) + d.view(); strings.Contains(all, "0123456789") || strings.Contains(all, "abcdefghij") {
			t.Errorf("%s: a part of the secret is shown:\n%s", what, all)
		}
	}
	invocation := canister.Invocation{Head: canister.Head{ID: "1"}, Name: "get", Arguments: `{"path":"x","token":"` + secret + `"}`}
	d.happens(converse.TurnStarted{})
	for _, r := range "I think " + secret + " is it." {
		d.happens(converse.ReasoningDelta{Text: string(r)})
		lacks("reasoning")
	}
	for _, r := range "The key is " + secret + " here." {
		d.happens(converse.TextDelta{Text: string(r)})
		lacks("text")
	}
	d.happens(converse.MessageCompleted{})
	d.shows("here.")
	d.happens(converse.InvocationStarted{Invocation: invocation})
	lacks("a running call")
	d.happens(converse.InvocationCompleted{
		Invocation: invocation, Result: canister.Result{Code: "X", Content: canister.Texts("It is " + secret)}, Cause: secret,
	})
	lacks("a call")
	d.keys("ctrl+o", "ctrl+o")
	lacks("details")
	ui := &UI{options: *d.options, backlog: d.backlog, turns: make(chan struct{}, 1), over: make(chan struct{})}
	ask := approvals.Question{Approval: converse.Approval{Ensemble: "a", Tool: "b", Arguments: json.RawMessage(invocation.Arguments)}}
	select {
	case <-d.backlog.fresh:
	default:
	}
	for what, asks := range map[string]func(context.Context){
		"an approval": func(ctx context.Context) { ui.AskApproval(ctx, ask) },
		"a form": func(ctx context.Context) {
			ui.Elicit(ctx, &invoker.ElicitRequest{Server: secret, Message: "Is it " + secret + "?", Schema: json.RawMessage(`{"properties":{
				"a":{"title":"` + secret + `","description":"` + secret + `","enum":["` + secret + `"],"default":"` + secret + `"}},"required":["a"]}`)})
		},
		"a page": func(ctx context.Context) {
			ui.Elicit(ctx, &invoker.ElicitRequest{Message: secret, URL: "https://example.com/" + secret})
		},
	} {
		ui.turns <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() { asks(ctx) })
		<-d.backlog.fresh
		d.Update(arrived{})
		d.rests()
		lacks(what)
		d.keys("f", "down", "enter")
		lacks(what)
		cancel()
		asking.Wait()
		<-d.backlog.fresh
		d.Update(arrived{})
		<-ui.turns
	}
}

// Nothing is sent before a message is waited for, and all of it stays in the input.
func TestTextStaysUntilItIsSent(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.keys("first", "enter")
	if _, sent := d.sent(); sent {
		t.Error("it was sent before a message was waited for")
	}
	d.shows("first", "Not sent yet")
	d.happens(readiness{true})
	d.keys("enter")
	if text, _ := d.sent(); text != "first" {
		t.Errorf("sent %q", text)
	}
	d.happens(converse.TurnStarted{})
	d.happens(converse.TextDelta{Text: "An answer."})
	d.keys("second")
	d.paste("line one\nline two")
	d.keys("enter")
	d.happens(converse.TextDelta{Text: " It goes on."})
	d.shows("An answer. It goes on.", "secondline one", "line two")
	d.happens(turnOver{})
	d.happens(readiness{true})
	if _, sent := d.sent(); sent {
		t.Error("it was sent by itself")
	}
	d.keys("ctrl+j", "third", "alt+enter", "fourth\\", "enter", "fifth", "enter")
	if text, _ := d.sent(); text != "secondline one\nline two\nthird\nfourth\nfifth" {
		t.Errorf("sent %q", text)
	}
	d.happens(readiness{true})
	d.keys("ctrl+d")
	if _, ok := d.sent(); ok || d.ready {
		t.Error("Ctrl-D does not leave")
	}
}

// Hints are whole, and flags and IDs are not broken at their hyphens.
func TestNothingIsCut(t *testing.T) {
	for _, width := range []int{40, 60, 80} {
		d := newDesk(t, width, 24)
		d.keys("text", "enter")
		d.shows("Not sent yet: press Enter again when the answer is complete, or Ctrl-C to cancel it.")
		for range width {
			const command = "20261123-3weygijb --conversation"
			d.say(strings.Repeat("x", len(d.paper.rows)) + " " + command)
			if last := d.paper.rows[max(0, len(d.paper.rows)-2):]; !strings.Contains(strings.Join(last, "|"), "20261123-3weygijb") ||
				!strings.Contains(strings.Join(last, "|"), "--conversation") {
				t.Fatalf("%q is in pieces: %q", command, last)
			}
		}
	}
	if rows := wrap("a-b \uf8ff c", 5); strings.Join(rows, "|") != "a-b \uf8ff|c" {
		t.Errorf("%q", rows)
	}
}

// A paste is one text, byte for byte, however it is shown.
func TestPaste(t *testing.T) {
	long := strings.Repeat("a line\n\twith a tab\n", 60)
	for name, test := range map[string]struct{ pasted, shown, sent string }{
		"short":     {"one\rtwo\r\nthree", "one two three", "one\ntwo\nthree"},
		"long":      {long, "[pasted 1: 121 lines", long},
		"tabs":      {"a\tb", "[pasted 1: 1 lines", "a\tb"},
		"invisible": {"a\u202eb", "invisible]", "a\u202eb"},
		"replaced":  {"caf\ufffd", "invisible]", "caf\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 80, 24)
			d.happens(readiness{true})
			d.keys("see: ")
			d.paste(test.pasted)
			d.shows(test.shown)
			d.keys("enter")
			if text, _ := d.sent(); text != "see: "+test.sent {
				t.Errorf("sent %q", text)
			}
		})
	}
}

// The view fits the window whatever goes on.
func TestTheViewFits(t *testing.T) {
	for _, size := range [][2]int{{40, 14}, {80, 24}, {120, 40}, {200, 60}} {
		d := newDesk(t, size[0], size[1])
		d.happens(Status{Model: strings.Repeat("model", 20), Starting: []string{"files", "mail"}, Away: []string{strings.Repeat("x", 60)}})
		for i := range 12 {
			d.happens(converse.InvocationStarted{Invocation: canister.Invocation{
				Head: canister.Head{ID: fmt.Sprint(i)}, Name: strings.Repeat("tool", 20),
				Arguments: `{"path":"/a/long/path/of/something"}`,
			}})
		}
		d.happens(converse.TextDelta{Text: strings.Repeat("words 東京 and more ", 80) + "\n\n| a | b |\n|--|--|\n| c | d |\n"})
		d.keys(strings.Repeat("typed ", raced.Fewer(100)))
		d.view()
		d.asked(&question{render: text(50), choices: choices})
		d.view()
		d.rests()
		d.view()
		d.keys("d")
		d.view()
		d.keys("no", "enter")
		for i := range 300 {
			d.history.remember(fmt.Sprint("message ", i))
		}
		d.keys("ctrl+r", "message 1")
		d.shows("search: message 1")
		d.keys("esc")
		d.input.set("/")
		d.Update(completed{"/", Completions{Replace: 1, Items: []Completion{{"/new", strings.Repeat("about ", 50)}, {"/quit", ""}, {"/tools", "x"}}}})
		d.shows("/quit")
	}
}

// For a while after the view got smaller, only so many rows are printed above it as fit above the
// larger view, which the screen may still have.
func TestPrintsFitTheLargerView(t *testing.T) {
	const height = 40
	d := newDesk(t, 80, height)
	now := time.Now()
	d.model.now = func() time.Time { return now }
	d.asked(&question{render: text(20), choices: choices})
	d.view()
	large := d.rows
	d.rests()
	d.confirms("y")
	d.Update(clearScreen)
	d.view()
	if d.rows >= large {
		t.Fatalf("the view has %d rows, and had %d", d.rows, large)
	}
	d.happens(note{strings.Repeat("row\n", 100)})
	for _, step := range []struct {
		later time.Duration
		rows  int
	}{{3 * frameTime, large}, {drawTime, d.rows}} {
		now = now.Add(step.later)
		d.Update(printed(0))
		if got := d.paper.printing; got < 1 || got > height-step.rows-1 {
			t.Errorf("%v later, %d rows are printed above %d of %d", step.later, got, step.rows, height)
		}
	}
}

// No sequence from tools, models or servers reaches the terminal.
func TestSequencesHaveNoEffect(t *testing.T) {
	const hostile = "\x1b[2J\x1b]0;title\a\u202edrow\u2066\x9b1A\x1b[5A"
	d := newDesk(t, 80, 24)
	d.happens(Status{Model: hostile, Starting: []string{hostile}, Away: []string{hostile}, Budget: hostile})
	invocation := canister.Invocation{Head: canister.Head{ID: "1"}, Name: hostile, Arguments: `{"a":"` + hostile + `"}`}
	for _, event := range []converse.Event{
		converse.TurnStarted{}, converse.ReasoningDelta{Text: hostile}, converse.TextDelta{Text: hostile + "\n\n"},
		converse.TextDelta{Text: hostile}, converse.InvocationAnnounced{Name: hostile}, converse.InvocationStarted{Invocation: invocation},
		converse.InvocationProgressed{Invocation: invocation, Progress: invoker.Progress{Message: hostile}},
		converse.ExchangeRetried{Retry: converse.Retry{Err: errors.New(hostile)}},
	} {
		d.happens(event)
		d.harmless()
	}
	d.happens(converse.InvocationCompleted{Invocation: invocation, Result: canister.Result{Code: "X", Content: canister.Texts(hostile)}, Cause: hostile})
	d.happens(note{hostile + "\n" + hostile})
	d.keys("ctrl+o", "ctrl+o")
	d.harmless()
	d.history.remember(hostile)
	d.keys("ctrl+r", "d")
	d.harmless()
	d.keys("esc")
	d.asked(&question{render: func(style rendering.Style) []string { return wrapAll(hostile, style.Width) }, choices: choices})
	d.rests()
	d.harmless()
}

// ours is a change of colours, the only sequence of rows.
var ours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// harmless checks that the view and the transcript have no sequences but colours.
func (d *desk) harmless() {
	d.t.Helper()
	for _, text := range append(d.paper.rows, d.View().Content) {
		rest := ours.ReplaceAllString(text, "")
		if i := strings.IndexAny(rest, "\x1b\a\u202e\u2066\u009b"); i >= 0 {
			d.t.Fatalf("there is a sequence at %d of %q", i, rest)
		}
	}
}

// Finished rows leave the memory of the model, and what waits is bounded.
func TestFinishedRowsLeave(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.now = func() time.Time { return time.Time{}.Add(time.Hour) }
	paragraphs, printedRows := raced.Fewer(5000), 0
	for i := range paragraphs {
		d.happens(converse.TextDelta{Text: fmt.Sprintf("Paragraph %d of an answer.\n\n", i)})
		for d.paper.printing > 0 {
			printedRows += d.paper.printing
			d.Update(printed(d.paper.printing))
		}
		if len(d.paper.rows) > 100 {
			t.Fatalf("%d rows are in memory", len(d.paper.rows))
		}
	}
	if printedRows < 2*paragraphs-100 {
		t.Errorf("%d rows were printed", printedRows)
	}
}

func TestReasoningIsFolded(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.happens(converse.TurnStarted{})
	d.happens(converse.ReasoningDelta{Text: "First I consider the weather."})
	d.shows("thinking")
	d.happens(converse.TextDelta{Text: "It snows."})
	d.shows("thought for", "It snows.")
	if strings.Contains(d.view(), "consider the weather") {
		t.Error("the reasoning is not folded")
	}
	d.keys("ctrl+o")
	d.shows("First I consider the weather.")
	d.keys("ctrl+o")
	d.shows("nothing more to unfold")
}

// A row that is empty is printed, too.
func TestEmptyRowsArePrinted(t *testing.T) {
	for _, rows := range [][]string{{""}, {"", ""}, {"one", ""}} {
		text := printable(rows)
		if text == "" || ansi.Strip(text) != strings.Join(rows, "\n") {
			t.Errorf("%q is printed as %q", rows, text)
		}
	}
}

// Rows can be printed several times between two frames. The view of the second frame must
// differ from that of the first then too: otherwise nothing is drawn, and the cursor stays
// where the rows were printed.
func TestEachPrintChangesTheView(t *testing.T) {
	d := newDesk(t, 40, 10)
	seen := map[string]bool{}
	for range 300 {
		seen[d.View().Content] = true
		d.Update(printed(0))
	}
	if len(seen) != 300 {
		t.Errorf("300 prints made %d views", len(seen))
	}
}

// A program is one line, and one about the calls that it made. They have no lines of their own
// until the program is unfolded.
func TestProgramsAreFolded(t *testing.T) {
	d := newDesk(t, 80, 40)
	call := func(id, parent, name, arguments string) canister.Invocation {
		return canister.Invocation{Head: canister.Head{ID: id}, Parent: parent, Name: name, Arguments: arguments}
	}
	program := call("p", "", "code__run_code", `{"program":"return 1"}`)
	d.happens(converse.InvocationStarted{Invocation: program})
	for i, code := range []string{"", "", "TIMEOUT"} {
		inner := call(fmt.Sprint(i), "p", "files__read", fmt.Sprintf(`{"path":"inner%d"}`, i))
		d.happens(converse.InvocationStarted{Invocation: inner})
		d.shows(fmt.Sprintf("inner%d", i)) // it runs
		d.happens(converse.InvocationCompleted{Invocation: inner, Result: canister.Result{Code: code, Content: canister.Texts("said")}})
	}
	d.happens(converse.InvocationCompleted{Invocation: program, Result: canister.Result{Content: canister.Texts("value")}})
	d.shows("code__run_code", "value", "3 calls, 1 failed: files__read 3 times")
	if strings.Contains(d.view(), "inner") {
		t.Errorf("it shows\n%s", d.view())
	}
	d.keys("ctrl+o")
	d.shows("inner0", "inner1", "inner2", "TIMEOUT")
	if len(d.programs) > 0 {
		t.Error("the calls of the program are kept twice")
	}
	for i := range 100 {
		d.happens(converse.InvocationCompleted{Invocation: call("x", fmt.Sprint("never", i), "files__read", "{}")})
	}
	if len(d.programs) > maxPrograms {
		t.Errorf("%d programs are kept", len(d.programs))
	}
}

// Nothing is printed until the terminal has been written to after the view got smaller.
func TestPrintsWaitForTheSmallerView(t *testing.T) {
	d := newDesk(t, 80, 40)
	now := time.Now()
	d.model.now, d.model.writes = func() time.Time { return now }, new(atomic.Int64)
	d.asked(&question{render: text(20), choices: choices})
	d.view()
	d.rests()
	d.confirms("y")
	d.Update(clearScreen)
	d.view()
	d.happens(note{strings.Repeat("row\n", 100)})
	now = now.Add(drawTime / 2)
	d.Update(settled{})
	if n := d.paper.printing; n != 0 {
		t.Errorf("%d rows are printed before the smaller view is drawn", n)
	}
	d.model.writes.Add(1)
	d.Update(settled{})
	if d.paper.printing == 0 {
		t.Error("nothing is printed after the smaller view is drawn")
	}
	d.asked(&question{render: text(20), choices: choices})
	d.view()
	d.rests()
	d.confirms("y")
	if d.clearing {
		t.Error("the screen is cleared while rows are on their way")
	}
}

// Shift-Tab goes through the proposals from the last one to the first, and around.
func TestShiftTab(t *testing.T) {
	d := newDesk(t, 80, 24)
	for _, items := range [][]Completion{{{Text: "/a"}, {Text: "/b"}}, {{Text: "/a"}, {Text: "/b"}, {Text: "/c"}}} {
		d.input.set("/")
		d.Update(completed{"/", Completions{Replace: 1, Items: items}})
		for i := range 2 * len(items) {
			d.Update(tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift})
			if want := items[len(items)-1-i%len(items)].Text; d.input.before() != want {
				t.Errorf("%d of %d: the input is %q, want %q", i, len(items), d.input.before(), want)
			}
		}
	}
}

// A single proposal is complete, and gets a space, unless it is a folder.
func TestASingleProposal(t *testing.T) {
	d := newDesk(t, 80, 24)
	folder := "docs" + string(filepath.Separator)
	for _, c := range []struct{ text, proposal, want string }{
		{"/export doc", folder, "/export " + folder}, {"/export not", "notes.md", "/export notes.md "}, {"see @https://x", "@https://x/", "see @https://x/ "},
	} {
		d.input.set(c.text)
		word := c.text[strings.LastIndex(c.text, " ")+1:]
		d.Update(completed{c.text, Completions{Replace: len(word), Items: []Completion{{Text: c.proposal}}}})
		if got := d.input.before(); got != c.want || d.menu != nil {
			t.Errorf("the input is %q, want %q", got, c.want)
		}
	}
}
