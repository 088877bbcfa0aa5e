// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// The entries of a stream are rendered once for all that watch a conversation, but the forms in
// them have the token of the reader's session, and only readers who may fork have any.
func TestWatchersHaveTheirOwnForms(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	canisters := []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("the plan of Ada")},
		canister.Assistant{Head: canister.Head{ID: "a"}, Content: canister.Texts("noted"), Finish: canister.FinishStop}}
	stored(t, s.Store, "of-ada", "owner-ada", canisters...)
	stored(t, s.Store, "of-ben", "owner-ben", canisters...)
	last := func(p *consolestage.Person, name string) string {
		t.Helper()
		response := p.Open(http.MethodGet, "/conversations/"+name+"/live?after=1", nil, "Accept", "text/event-stream")
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), `data: {"html"`); ok {
				var e struct{ ID, HTML string }
				if err := json.Unmarshal([]byte(`{"html"`+data), &e); err != nil || e.ID != "c2" {
					t.Fatalf("%v in %s", err, data)
				}
				return e.HTML
			}
		}
		t.Fatal("the stream ended")
		return ""
	}
	people := []*consolestage.Person{s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ops), s.Login(t, consolestage.Ops)}
	for i, p := range people {
		if html := last(p, "of-ada"); !strings.Contains(html, `value="`+p.Form+`"`) || !strings.Contains(p.Get("/conversations/of-ada").Text, html) {
			t.Errorf("person %d gets %s", i, html)
		}
	}
	ben, ops := s.Login(t, consolestage.Ben), s.Login(t, consolestage.Ops)
	if html := last(ops, "of-ben"); !strings.Contains(html, ops.Form) {
		t.Errorf("an operator gets %s", html)
	}
	if html := last(ben, "of-ben"); strings.Contains(html, "<form") {
		t.Errorf("a reader gets %s", html)
	}
}
