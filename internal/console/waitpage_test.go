// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/invoker"
)

var marked = regexp.MustCompile(`<(?:ins|del)>[^<]*</(?:ins|del)>`)

// Only lines that a comparison has removed or added are marked, whatever the others begin with.
func TestMarksOfChanges(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ops := s.Login(t, consolestage.Ops)
	for id, c := range map[string]struct {
		arguments string
		marked    []string
	}{
		"ask-new":  {`{"content":"- hosts: all\n+ rm: everything\n| - x"}`, nil},
		"ask-edit": {`{"old_text":"- a\n- b","new_text":"- a\n- c"}`, []string{"<del>    │ - - b</del>", "<ins>    │ + - c</ins>"}},
	} {
		stored(t, s.Store, id, "approval-zoe", asking(id, "", "1", c.arguments)...)
		if got := marked.FindAllString(ops.Get("/conversations/"+id).Text, -1); strings.Join(got, "\n") != strings.Join(c.marked, "\n") {
			t.Errorf("%s: %q, want %q", c.arguments, got, c.marked)
		}
	}
	screen := s.Pins.Screen("changed", pins.SetAside, nil)
	for _, text := range []string{"- a\n- b", "- a\n- c"} {
		screen([]*invoker.Definition{{Name: "list", Description: text}})
	}
	if got, want := marked.FindAllString(ops.Get("/pins").Text, -1), "<del>│ - - b</del>\n<ins>│ + - c</ins>"; strings.Join(got, "\n") != want {
		t.Errorf("the pins: %q, want %q", got, want)
	}
}

// properties returns the properties that the rules of a stylesheet with a selector set, outside of media queries.
func properties(css, selector string) map[string]string {
	found := map[string]string{}
	for _, rule := range regexp.MustCompile(`(?m)^([^@{}\n]+) \{([^{}]*)\}`).FindAllStringSubmatch(css, -1) {
		if !slices.Contains(strings.Split(rule[1], ", "), selector) {
			continue
		}
		for property := range strings.SplitSeq(rule[2], ";") {
			if name, value, ok := strings.Cut(property, ":"); ok {
				found[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
		}
	}
	return found
}

// A person can answer only below the whole call: no box scrolls a part of it out of sight downwards. The browser does
// not wrap its rows, because a row of content could then begin like one of the console's.
func TestWholeCallIsShown(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ops := s.Login(t, consolestage.Ops)
	stored(t, s.Store, "ask", "approval-zoe", asking("ask", "", "1", `{"content":"`+strings.Repeat("a line that is rather long ", 40)+`"}`)...)
	page := ops.Get("/waiting").Text
	sheet := regexp.MustCompile(`href="/console(/static/console\.css[^"]*)"`).FindStringSubmatch(page)
	if sheet == nil {
		t.Fatalf("the page has no stylesheet:\n%s", page)
	}
	css := ops.Get(sheet[1]).Text
	for selector, want := range map[string]map[string]string{
		"pre.diff":    {"max-height": "none", "white-space": "pre", "overflow-x": "auto"},
		".wait > pre": {"max-height": "none"},
	} {
		got := properties(css, selector)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s of %s is %q, want %q", name, selector, got[name], value)
			}
		}
	}
	rows := regexp.MustCompile(`(?s)<pre tabindex="0" class="diff">(.*?)</pre>`).FindStringSubmatch(page)
	if rows == nil {
		t.Fatalf("the page lacks the call:\n%s", page)
	}
	for row := range strings.SplitSeq(html.UnescapeString(rows[1]), "\n") {
		if n := utf8.RuneCountInString(row); n > 60 {
			t.Errorf("a row has %d columns, too many for a small window: %q", n, row)
		}
	}
}

// An address that can be mistaken for another host's has a warning, and is not a link if it has a user.
func TestDeceptiveAddresses(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: time.Now()} }
	for id, c := range map[string]struct {
		address, warning string
		isLink           bool
	}{
		"plain": {"https://bank.example/login", "", true},
		"user":  {"https://bank.example@evil.example/login", "The page is on the host evil.example: the part before the @ does not belong to its name.", false},
		"other": {"https://xn--bnk-7na.example/", "letters of another alphabet", true},
		"none":  {"javascript:alert(1)", "This is not the address of a web page.", false},
	} {
		question, err := json.Marshal(map[string]string{"server": "shop", "message": "Log in.", "url": c.address})
		if err != nil {
			t.Fatal(err)
		}
		stored(t, s.Store, id, "owner-ada", canister.User{Head: head("u"), Content: canister.Texts("x")},
			canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
			canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: "local__buy", Arguments: `{}`},
			canister.Wait{Head: head("w"), For: canister.WaitElicitation, Invocation: "i", Deadline: time.Now().Add(time.Hour), Conversation: id, Question: question})
		page := ada.Get("/conversations/" + id).Text
		has(t, page, c.address, "I have opened it")
		link := strings.Index(page, `href="`+c.address+`"`)
		if (link >= 0) != c.isLink {
			t.Errorf("%s is a link: %t", c.address, link >= 0)
		}
		if c.warning == "" {
			continue
		}
		if at := strings.Index(page, c.warning); at < 0 || at > strings.Index(page, c.address+"<") {
			t.Errorf("%s: the warning is at %d of the page:\n%s", c.address, at, page)
		}
	}
}

// A link in a message opens in a tab of its own: the page can have a text that is not sent yet.
func TestLinksOpenElsewhere(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	stored(t, s.Store, "plan", "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("[a](https://a.example/)")})
	has(t, ada.Get("/conversations/plan").Text, `<a href="https://a.example/" rel="nofollow noreferrer noopener" target="_blank">a</a>`)
}
