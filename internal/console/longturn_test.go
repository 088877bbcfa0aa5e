// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// longTurn is a conversation whose model has called a program that made 400 calls, and a tool that waits.
// The last canister is the result of the program.
func longTurn() []canister.Canister {
	now := time.Now()
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: now} }
	all := []canister.Canister{canister.User{Head: head("u"), Content: canister.Texts("Do it.")},
		canister.Assistant{Head: head("a"), Model: "scripted", Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("p"), Message: "a", CallID: "1", Name: "code__run_code", Arguments: `{}`},
		canister.Invocation{Head: head("e"), Message: "a", CallID: "2", Name: "local__edit_file", Arguments: `{"path":"a.txt"}`}}
	for i := range 400 {
		call := fmt.Sprint("i", i)
		all = append(all, canister.Invocation{Head: head(call), Message: "a", CallID: call, Name: "local__weather", Arguments: `{}`, Parent: "p"},
			canister.Result{Head: head("r" + call), Invocation: call, Content: canister.Texts("Snow.")})
	}
	return append(all, canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "e", Deadline: now.Add(time.Hour), Conversation: "long",
		Arguments: `{"path":"a.txt"}`}, canister.Result{Head: head("r"), Invocation: "p", Content: canister.Texts("the value")})
}

// The page of a conversation whose turn is longer than the page has the form that answers.
func TestAnswerFormOfLongTurn(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "long", "owner-ada", longTurn()...)
	ada := s.Login(t, consolestage.Ada)
	page := ada.Get("/conversations/long").Text
	form := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(page)
	if form == nil || !strings.Contains(page, "May this call be made? local__edit_file") {
		t.Fatalf("the page has no form for the answer:\n%.3000s", page)
	}
	ada.Post(form[1], "verdict", "deny", "reason", "not today")
	if page := ada.Get("/conversations/long").Text; !strings.Contains(page, "Answered.") {
		t.Errorf("the answer is refused:\n%.3000s", page)
	}
	if early := ada.Get("/conversations/long?to=300").Text; strings.Contains(early, "May this call be made?") {
		t.Errorf("an earlier page has a form:\n%.3000s", early)
	}
}

// A stream that continues late in a long turn sends a result together with its call, and nothing that
// the page has already.
func TestLiveInLongTurn(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	all := longTurn()
	stored(t, s.Store, "long", "owner-ada", all...)
	ada := s.Login(t, consolestage.Ada)
	response := ada.Open(http.MethodGet, "/conversations/long/live", nil, "Last-Event-ID", fmt.Sprint(len(all)-1))
	defer response.Body.Close()
	var entries []string
	lines, isLast := bufio.NewScanner(response.Body), false
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		isLast = isLast || lines.Text() == fmt.Sprint("id: ", len(all))
		if strings.HasPrefix(lines.Text(), `data: {"html"`) {
			if entries = append(entries, lines.Text()); isLast {
				break
			}
		}
	}
	if len(entries) != 1 || !strings.Contains(entries[0], `id=\"c3\"`) || !strings.Contains(entries[0], "the value") || !strings.Contains(entries[0], "Calls of this program (400)") {
		t.Errorf("the stream sends %d entries: %.1000q", len(entries), entries)
	}
}

// A page that would begin in the middle of a turn has the calls of its results, and the link to what is before.
func TestPageBeginsWithMessage(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	var before []canister.Canister
	for i := range 300 {
		before = append(before, canister.User{Head: canister.Head{ID: fmt.Sprint("b", i)}, Content: canister.Texts("before")})
	}
	all := append(before, longTurn()...)
	stored(t, s.Store, "long", "owner-ada", all...)
	ada := s.Login(t, consolestage.Ada)
	for _, query := range []string{"", "?to=900"} {
		page := ada.Get("/conversations/long" + query).Text
		if strings.Contains(page, `class="entry result`) || !strings.Contains(page, "Calls of this program (") || !strings.Contains(page,
			`?to=301"`) {
			t.Errorf("%q has results alone, lacks the call, or the link:\n%.3000s", query, page)
		}
	}
}
