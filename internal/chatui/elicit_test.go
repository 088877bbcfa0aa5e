// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/invoker"
)

// elicits puts a server's question to the person. The function that it returns waits for
// the outcome.
func (d *desk) elicits(ask *invoker.ElicitRequest) func() (*invoker.ElicitResult, error) {
	d.t.Helper()
	ui := &UI{options: *d.options, backlog: d.backlog, turns: make(chan struct{}, 1), over: make(chan struct{})}
	ui.turns <- struct{}{}
	select {
	case <-d.backlog.fresh:
	default:
	}
	type outcome struct {
		*invoker.ElicitResult
		error
	}
	given := make(chan outcome, 1)
	go func() {
		result, err := ui.Elicit(d.t.Context(), ask)
		given <- outcome{result, err}
	}()
	<-d.backlog.fresh
	d.Update(arrived{})
	return func() (*invoker.ElicitResult, error) {
		d.t.Helper()
		if d.question != nil {
			d.t.Fatalf("there is no answer:\n%s", d.view())
		}
		o := <-given
		return o.ElicitResult, o.error
	}
}

const seats = `{"type":"object","required":["name","class"],"properties":{
	"name":  {"type":"string","title":"Your name","description":"as in the passport","minLength":2},
	"bags":  {"type":"integer","minimum":0,"maximum":3,"default":1},
	"class": {"type":"string","oneOf":[{"const":"eco","title":"Economy"},{"const":"biz","title":"Business"}],"default":"biz"},
	"meal":  {"type":"string","enum":["veg","fish"]},
	"extra": {"type":"array","items":{"anyOf":[{"const":"wifi","title":"Wi-Fi"},{"const":"lounge","title":"Lounge"},{"const":"lane","title":"Fast lane"}]},"maxItems":2,"default":["lounge"]},
	"window":{"type":"boolean","default":true}}}`

// A form is filled in field by field, and sent when all of the answers were on the screen.
func TestForm(t *testing.T) {
	for _, size := range [][2]int{{40, 14}, {40, 24}, {80, 24}, {120, 40}} {
		d := newDesk(t, size[0], size[1])
		outcome := d.elicits(&invoker.ElicitRequest{Server: "airline", Message: "Which seat?", Schema: json.RawMessage(seats)})
		d.keys("f", "enter") // before the keyboard has rested
		d.rests()
		d.input.set("")
		d.shows("The server airline asks: Which", "seat?", "f fill in the form", "n decline", "x leave it unanswered")
		d.keys("f")
		d.shows("Your name (required)", "as in the passport", "field 1 of 6")
		d.keys("enter")
		d.shows("this is required")
		d.keys("A", "enter")
		d.shows("at least 2")
		d.keys("da", "enter")
		d.shows("bags", "> 1")
		d.keys("9", "enter")
		d.shows("at most 3")
		d.keys("backspace", "backspace", "2", "enter")
		d.shows("class", "> Business")
		d.keys("up", "enter", "enter") // the default of meal is no answer
		d.shows("extra", "[x] Lounge", "Space selects")
		d.keys("space", "down", "down", "space", "enter")
		d.shows("choose at most 2")
		d.keys("up", "space", "enter")
		d.shows("window", "> yes")
		d.keys("down", "enter")
		d.Update(looked{d.question, d.question.shown})
		for range 10 { // the rows of a small window
			d.keys("pgdown")
			d.looks()
		}
		d.confirms("s")
		result, err := outcome()
		want := map[string]any{"name": "Ada", "bags": 2.0, "class": "eco", "extra": []any{"wifi", "lane"}, "window": false}
		if err != nil || result.Action != invoker.Accept || !reflect.DeepEqual(result.Content, want) {
			t.Errorf("%v: %+v, %v", size, result, err)
		}
		if size[1] > 20 {
			d.shows("Your name: Ada", "class: Economy", "meal: (no answer)", "extra: Wi-Fi, Fast lane", "window: no", "→ send")
		}
	}
}

// What was changed after the answers were shown is shown before it is sent, and a form with
// an answer that is not valid cannot be sent.
func TestNobodySendsWhatWasNotShown(t *testing.T) {
	d := newDesk(t, 80, 24)
	outcome := d.elicits(&invoker.ElicitRequest{
		Message: "Who?",
		Schema:  json.RawMessage(`{"properties":{"name":{"type":"string","minLength":2}},"required":["name"]}`),
	})
	d.rests()
	d.keys("s", "enter") // no choice yet
	d.rests()
	d.keys("f", "Ada", "enter")
	d.shows("name: Ada")
	d.keys("s", "enter") // the answers have just come on the screen
	d.Update(picked{d.question, d.question.press})
	d.keys("enter", "esc")
	d.keys("e", "backspace", "backspace", "esc")
	d.looks()
	d.keys("s", "enter")
	d.rests()
	d.shows("f fill in the form")
	d.keys("f")
	d.paste("lice")
	d.keys("enter")
	d.looks()
	d.shows("name: Alice")
	d.confirms("s")
	if result, err := outcome(); err != nil || result.Content["name"] != "Alice" {
		t.Errorf("%+v, %v", result, err)
	}
}

// A person can decline, or dismiss a question, also in the middle of a form.
func TestReactions(t *testing.T) {
	form := &invoker.ElicitRequest{Server: "s", Message: "Who?", Schema: json.RawMessage(`{"properties":{"name":{"type":"string"}}}`)}
	empty := &invoker.ElicitRequest{Server: "s", Message: "Sure?", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}
	page := &invoker.ElicitRequest{Server: "s", Message: "Log in.", URL: "https://example.com/a"}
	for name, test := range map[string]struct {
		ask    *invoker.ElicitRequest
		keys   []string
		choice string
		want   invoker.Action
	}{
		"decline":               {form, nil, "n", invoker.Decline},
		"dismiss":               {form, nil, "x", invoker.Dismiss},
		"no answer":             {form, []string{"ctrl+d"}, "", invoker.Dismiss},
		"decline in the form":   {form, []string{"f", "half", "esc"}, "n", invoker.Decline},
		"a form without fields": {empty, nil, "y", invoker.Accept},
		"a page":                {page, nil, "v", invoker.Accept},
		"no page":               {page, nil, "n", invoker.Decline},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 80, 24)
			outcome := d.elicits(test.ask)
			d.rests()
			d.keys(test.keys...)
			if test.choice != "" {
				d.confirms(test.choice)
			}
			if result, err := outcome(); err != nil || result.Action != test.want || len(result.Content) > 0 {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// A page is opened only after the whole of its address was on the screen.
func TestPage(t *testing.T) {
	d := newDesk(t, 40, 14)
	var opened []string
	d.options.Open = func(_ context.Context, url string) error {
		opened = append(opened, url)
		return errors.New("no browser")
	}
	const start = "https://example.com@evil.example/"
	address := start + strings.Repeat("a", 500) + "/end"
	outcome := d.elicits(&invoker.ElicitRequest{Server: "s", Message: "Log in.", URL: address})
	d.rests()
	d.keys("o", "enter")
	if len(opened) > 0 {
		t.Fatal("the page was opened before the end of its address was shown")
	}
	var shown strings.Builder
	for range 20 {
		shown.WriteString(d.view())
		d.keys("pgdown")
		d.looks()
	}
	if all := shown.String(); !strings.Contains(all, "aaa/end") || !strings.Contains(all, "evil.example") || !strings.Contains(all, "before the @") {
		t.Errorf("shown is\n%s", all)
	}
	d.confirms("o")
	if result, err := outcome(); err != nil || result.Action != invoker.Accept || !reflect.DeepEqual(opened, []string{address}) {
		t.Errorf("%+v, %v; opened %q", result, err, opened)
	}
	d = newDesk(t, 80, 24)
	d.elicits(&invoker.ElicitRequest{Server: "s", Message: "Look.", URL: "file:///etc/passwd"})
	d.rests()
	if strings.Contains(d.view(), "open it in the browser") {
		t.Errorf("it can be opened:\n%s", d.view())
	}
}

// In a narrow window, rows are indented, the hint names the keys of fields, and the current
// option is visible.
func TestNarrowForm(t *testing.T) {
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, `,{"const":"%d","title":"Option %d"}`, i, i)
	}
	form := `{"required":["name","one"],"properties":{
		"name": {"title":"Your name","description":"as it is written in the passport that you will show at the border"},
		"some": {"type":"array","description":"what else is wanted on board, and may cost more than the seat","items":{"anyOf":[` + many.String()[1:] + `]}},
		"one":  {"description":"what decides about the bags that may be carried on board","oneOf":[` + many.String()[1:] + `]}}}`
	for _, height := range []int{14, 24} {
		d := newDesk(t, 40, height)
		d.elicits(&invoker.ElicitRequest{Server: "airline", Message: strings.Repeat("Which seat would you like? ", 20), Schema: json.RawMessage(form)})
		d.rests()
		d.shows("Space shows more, PgUp less")
		d.keys("f")
		for _, row := range strings.Split(d.view(), "\n")[2:] {
			if strings.Contains(row, "passport") && !strings.HasPrefix(row, "  ") {
				t.Errorf("not indented: %q", row)
			}
		}
		d.shows("Your name (required)", "PgDn, PgUp scroll", "Enter next, Esc leaves")
		if strings.Contains(d.view(), "Space") {
			t.Errorf("Space is named while a field is being filled in:\n%s", d.view())
		}
		d.keys("enter")
		d.shows("this is required", "Enter next, Esc leaves")
		d.keys("Ada", "enter")
		for _, field := range []string{"some", "one"} {
			d.shows(field, "Option 0", "Option 2", "Shift-Tab back, Esc leaves")
			for i := range 19 {
				d.keys("down")
				d.shows(fmt.Sprintf("Option %d", i+1))
			}
			d.keys("enter")
		}
		d.shows("send it?")
	}
}

// No sequence of a server reaches the terminal through a form, and options of one name are
// told apart.
func TestHostileForm(t *testing.T) {
	const hostile = `\u001b[2J\u202edrow\u0007`
	d := newDesk(t, 60, 24)
	outcome := d.elicits(&invoker.ElicitRequest{Server: "s\x1b[5A", Message: "\x1b]0;t\a?", Schema: json.RawMessage(`{"properties":{
		"` + hostile + `": {"type":"string","title":"` + hostile + `","description":"` + hostile + `","default":"` + hostile + `"},
		"same": {"type":"array","items":{"oneOf":[{"const":"a","title":"` + hostile + `"},{"const":"b","title":"` + hostile + `"}]}},
		"one": {"oneOf":[{"const":"` + hostile + `","title":""}],"default":"` + hostile + `"}}}`)})
	d.rests()
	d.harmless()
	d.keys("f")
	for range 3 {
		d.harmless()
		d.keys("space", "enter")
	}
	d.looks()
	d.harmless()
	d.confirms("s")
	if result, err := outcome(); err != nil || !reflect.DeepEqual(result.Content["same"], []any{"a"}) || result.Content["one"] != "\x1b[2J\u202edrow\a" {
		t.Errorf("%q, %v", result, err)
	}
}

// Forms of many kinds fit the window in each state.
func TestFormsFit(t *testing.T) {
	long := strings.Repeat("words and more ", 12)
	many := make([]string, 20)
	for i := range many {
		many[i] = `{"const":"` + string(rune('A'+i%26)) + strings.Repeat("x", i) + `","title":"` + long + strings.Repeat("y", i) + `"}`
	}
	for _, size := range [][2]int{{40, 14}, {60, 16}, {80, 24}} {
		d := newDesk(t, size[0], size[1])
		d.elicits(&invoker.ElicitRequest{Server: "s", Message: long + long, Schema: json.RawMessage(`{"properties":{
			"text": {"type":"string","title":"` + long + `","description":"` + long + `","default":"` + long + `"},
			"one": {"title":"one","oneOf":[` + strings.Join(many, ",") + `]},
			"some": {"type":"array","title":"some","items":{"anyOf":[` + strings.Join(many, ",") + `]}}}}`)})
		d.rests()
		d.keys("f")
		for range 3 {
			d.view()
			d.keys("down", "down", "space")
			d.view()
			d.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1] - 2})
			d.view()
			d.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			d.keys("enter")
		}
		d.view()
	}
}

// The message of a server cannot pass for an address, or for another question.
func TestMessagesHaveBars(t *testing.T) {
	for _, width := range []int{40, 120} {
		d := newDesk(t, width, 24)
		d.elicits(&invoker.ElicitRequest{
			Server: "s", Message: "Sign in to continue.\n  https://good.example/login\n\n? The server good asks: your token", URL: "https://evil.example/x",
		})
		d.rests()
		d.shows("│ https://good.example/login │ │ ? The server good asks: your token https://evil.example/x visit it?")
	}
}

// A default that the person accepts is sent as it is, also if the control shows it in another
// way. One that was changed or removed is not.
func TestDefaultsAreNotChanged(t *testing.T) {
	const schema = `{"properties":{"note":{"type":"string","default":"fix: x\n\n\tlong \ufffd text "},"blank":{"type":"string","default":"  "},
		"number":{"type":"integer","default":7},"list":{"type":"array","items":{"type":"string"},"default":["a","b"]},
		"empty":{"type":"string","default":""},"hidden":{"type":"string","default":"\ufffd"}}}`
	for _, test := range []struct {
		keys []string
		want map[string]any
	}{
		{[]string{"enter", "enter", "enter", "enter", "enter", "enter"}, map[string]any{
			"note": "fix: x\n\n\tlong \ufffd text ", "blank": "  ", "number": 7.0, "list": []any{"a", "b"}, "empty": "", "hidden": "\ufffd",
		}},
		{[]string{"!", "enter", "backspace", "backspace", "enter", "backspace", "8", "enter", "backspace", "c", "enter", "x", "enter", "y", "enter"}, map[string]any{
			"note": "fix: x   long  text !", "number": 8.0, "list": []any{"a", "c"}, "empty": "x", "hidden": "y",
		}},
	} {
		d := newDesk(t, 80, 24)
		outcome := d.elicits(&invoker.ElicitRequest{Server: "s", Message: "Commit?", Schema: json.RawMessage(schema)})
		d.rests()
		d.keys("f")
		d.keys(test.keys...)
		if test.want["blank"] != nil {
			d.shows("note: fix: x<U+000A><U+000A><U+0009>long \ufffd text")
		}
		d.looks()
		d.confirms("s")
		if result, err := outcome(); err != nil || !reflect.DeepEqual(result.Content, test.want) {
			t.Errorf("%+v, %v, want %+v", result, err, test.want)
		}
	}
}
