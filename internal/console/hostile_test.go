// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/hostile"
	"github.com/consort-go/consort/invoker"
	"golang.org/x/net/html"
)

// pages are the paths of a stage with a conversation named plan.
var pages = []string{"/", "/waiting", "/conversations?q=x&tag=x", "/conversations", "/conversations/plan", "/conversations/plan?to=3",
	"/tools", "/tools/local__weather",
	"/library", "/library/resource?uri=note%3A%2F%2Fpacking", "/library/prompts/local__greet", "/spend", "/pins", "/audit", "/login", "/none"}

// Whatever users, models and tools write, a page has no script, handler, style, frame or
// address of another kind, and refers only to the console and, with links, to the web.
func TestHostileTexts(t *testing.T) {
	for i, said := range hostile.Texts {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{hostileTool(t, said)}})
			stored(t, s.Store, "plan", "owner-ada", everywhere(said)...)
			if clean := strings.ToValidUTF8(strings.ReplaceAll(said, "\x00", ""), ""); clean != "" {
				tags := []string{clean}
				if err := s.Store.Describe(t.Context(), "plan", history.Change{Title: &clean, Tags: &tags}); err != nil {
					t.Fatal(err)
				}
			}
			ops := s.Login(t, consolestage.Ops)
			pinned(t, s, said)
			if page := ops.Get("/pins").Text; !strings.Contains(page, "Accept the change") {
				t.Errorf("no pin waits: %s", page)
			}
			for _, path := range append(slices.Clone(pages), "/conversations?"+url.Values{"q": {said}, "owner": {said}, "tag": {said}}.Encode(),
				"/tools?"+url.Values{"q": {said}}.Encode(), "/audit?"+url.Values{"who": {said}}.Encode(), "/conversations/"+url.PathEscape(said)) {
				checkPage(t, path, ops.Get(path).Text)
			}
		})
	}
}

// pinned pins a tool that is changed to say a text wherever it can.
func pinned(t *testing.T, s *consolestage.Stage, said string) {
	t.Helper()
	screen := s.Pins.Screen("changed", pins.SetAside, nil)
	for _, text := range []string{"Plain.", "Changed. " + said} {
		schema, err := json.Marshal(map[string]any{"type": "object", "description": text})
		if err != nil {
			t.Fatal(err)
		}
		screen([]*invoker.Definition{{Name: "odd", Title: text, Description: text, InputSchema: schema, OutputSchema: schema}})
	}
}

// hostileTool is a tool that says a text wherever it can.
func hostileTool(t *testing.T, said string) invoker.Invoker {
	t.Helper()
	tool, err := invoker.Raw(invoker.Definition{Name: "odd", Title: said, Description: said,
		InputSchema: hostileSchema(t, said)},
		func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// hostileSchema is the schema of a form that has a text wherever it can.
func hostileSchema(t *testing.T, said string) json.RawMessage {
	t.Helper()
	said = strings.ToValidUTF8(said, "?")
	texts := map[string]any{"type": "string", "title": said, "description": said, "default": said}
	schema, err := json.Marshal(map[string]any{"type": "object", "description": said, "properties": map[string]any{
		"x": map[string]any{"type": "string", "title": "</label><script>"}, "y": texts, "z " + said: texts,
		"one": map[string]any{"type": "string", "title": said, "default": said, "oneOf": []any{map[string]any{"const": said},
			map[string]any{"const": "plain", "title": said}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// everywhere puts a text into each part of a conversation that waits.
func everywhere(said string) []canister.Canister {
	valid := strings.ToValidUTF8(said, "?")
	quoted := strconv.Quote(valid)
	now, contents := time.Now(), []canister.Content{canister.Text(said), canister.ImageContent{MIME: said, Data: []byte(said)},
		canister.LinkContent{URI: said, Name: said}}
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: now} }
	wait := func(id, call string) canister.Wait {
		return canister.Wait{Head: head(id), For: canister.WaitApproval, Invocation: call, Deadline: now.Add(time.Hour), Conversation: "plan", Arguments: `{"a":` + quotedJSON(valid) + `}`}
	}
	asks := func(id, call, address string) canister.Wait {
		w := wait(id, call)
		w.For, w.Arguments = canister.WaitElicitation, ""
		w.Question, _ = json.Marshal(map[string]any{"server": valid, "message": valid, "url": address, "schema": map[string]any{"type": "object",
			"properties": map[string]any{valid: map[string]any{"type": "string", "title": valid, "description": valid, "default": valid}}}})
		return w
	}
	return []canister.Canister{
		canister.Supervisor{Head: head("s"), Content: contents}, canister.Document{Head: head("d"), Title: said, URI: said, Content: contents},
		canister.User{Head: head("u"), Content: contents},
		canister.Assistant{Head: head("a"), Content: contents, Model: said, Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a", CallID: said, Name: said, Arguments: said},
		canister.Invocation{Head: head("j"), Message: "a", CallID: "j", Name: said, Arguments: `{"old_text":` + quoted + `}`},
		canister.Invocation{Head: head("k"), Message: "a", CallID: "k", Name: said, Arguments: `{}`},
		canister.Invocation{Head: head("l"), Message: "a", CallID: "l", Name: said, Arguments: `{}`},
		canister.Intent{Head: head("n"), Invocation: "i", Attempt: 1, Arguments: said},
		canister.Result{Head: head("r"), Invocation: "i", Content: contents, Code: said},
		wait("w", "j"), asks("x", "k", "javascript:alert(1)//"+valid), asks("y", "l", valid),
	}
}

func quotedJSON(text string) string {
	form, _ := json.Marshal(text) // a string has a JSON form
	return string(form)
}

// elements are those that a page may have.
var elements = strings.Fields(`html head meta title link script body a header p nav ul ol li div span form input button main h1 h2 h3 h4 h5 h6 section table caption
	thead tbody tr th td details summary pre code ins del mark article dl dt dd time label textarea select option meter img strong em blockquote br hr svg rect polyline text`)

// attributes are those that an element may have.
var attributes = strings.Fields(`lang charset name content http-equiv rel href src defer class id tabindex method action type value aria-label aria-current role scope
	datetime for open checked selected required rows min max high optimum data-refresh data-live data-live alt loading title width height x y viewbox text-anchor
	data-head points target maxlength autocomplete spellcheck inputmode start align disabled`)

func checkPage(t *testing.T, path, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(elements, node.Data) {
			t.Errorf("%s has the element %s", path, node.Data)
		}
		if node.Data == "script" && node.FirstChild != nil {
			t.Errorf("%s has an inline script", path)
		}
		for _, a := range node.Attr {
			checkAttribute(t, path, node.Data, a)
		}
	}
}

func checkAttribute(t *testing.T, path, element string, a html.Attribute) {
	t.Helper()
	if !slices.Contains(attributes, strings.ToLower(a.Key)) {
		t.Errorf("%s has <%s %s=%q>", path, element, a.Key, a.Val)
	}
	own := strings.HasPrefix(a.Val, "/console") || strings.HasPrefix(a.Val, "#") || a.Val == ""
	web := strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "mailto:")
	switch {
	case a.Key == "href" && element == "a" && (own || web):
	case slices.Contains([]string{"href", "src", "action", "data-live"}, a.Key) && !own:
		t.Errorf("%s has <%s %s=%q>", path, element, a.Key, a.Val)
	}
}

// Ten megabytes in one result do not become ten megabytes on a page.
func TestLargeTexts(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	large := strings.Repeat("0123456789<b>\n", 10<<20/14)
	stored(t, s.Store, "plan", "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("x")},
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "i", Name: "x", Arguments: "{}"},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: canister.Texts(large)})
	ada := s.Login(t, consolestage.Ada)
	reply := ada.Get("/conversations/plan")
	if reply.StatusCode != http.StatusOK || len(reply.Text) > 5<<20 {
		t.Errorf("%s with %d bytes", reply.Status, len(reply.Text))
	}
	checkPage(t, "/conversations/plan", reply.Text)
}
