// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// TestRepeatedInChat: a request of Chat Completions with a result and a message that is sent again
// gets the same turn.
func TestRepeatedInChat(t *testing.T) {
	s := serve(t, uses, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("use pick")}, "tools": chatTools("pick")})
	message, ids := chatCalls(t, first)
	body := object{"messages": []object{user("use pick"), message, toolMessage(ids["pick"], "picked"), user("more")}}
	id := first.header.Get("Consort-Conversation")
	for range 2 {
		next := s.want(http.StatusOK, "POST", "/v1/chat/completions", body)
		if next.header.Get("Consort-Conversation") != id || chatText(next) != "You said: more local__do" {
			t.Errorf("got %v of %s, want %s", next.form, next.header.Get("Consort-Conversation"), id)
		}
	}
	if said := ofKind[canister.User](s, id); len(said) != 2 {
		t.Errorf("the messages are %v", said)
	}
}

// TestRepeatedWithoutPrevious: the same with Responses, where the call alone says which
// conversation it is.
func TestRepeatedWithoutPrevious(t *testing.T) {
	s := serve(t, uses, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	items := []object{callOutput(functionCalls(first)["pick"], "picked"), user("more")}
	second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": items}).form
	again := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": items}).form
	if again["id"] != second["id"] {
		t.Errorf("got %v, and then %v", second, again)
	}
}

// TestRepeatedByOthers: another client cannot repeat a request, and gets nothing of it.
func TestRepeatedByOthers(t *testing.T) {
	s := serve(t, uses, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	one := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	items := []object{callOutput(functionCalls(first)["pick"], "picked"), user("more")}
	body := object{"previous_response_id": first["id"], "input": items}
	s.want(http.StatusOK, "POST", "/v1/responses", body)
	if got := s.as("bob").do("POST", "/v1/responses", body); got.status != http.StatusNotFound {
		t.Errorf("got %d %v", got.status, got.form)
	}
	s.want(http.StatusBadRequest, "POST", "/v1/responses", object{"previous_response_id": one["id"], "input": items})
}

// TestRepeatedAfterAFailure: a request whose turn has failed gets the same answer when it is sent
// again, also by a process that has seen nothing of it.
func TestRepeatedAfterAFailure(t *testing.T) {
	fails := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if lastText(request) == "more" {
			yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
			return
		}
		uses(ctx, request, yield)
	}
	store := history.NewMemory()
	s := serveStore(t, store, nil, fails, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	items := []object{callOutput(functionCalls(first)["pick"], "picked"), user("more")}
	body := object{"previous_response_id": first["id"], "input": items}
	second := s.do("POST", "/v1/responses", body)
	if second.form["status"] != "failed" {
		t.Fatalf("got %v", second.form)
	}
	for name, one := range map[string]*served{"the same": s, "another": serveStore(t, store, nil, fails, nil, nil)} {
		done := make(chan answer, 1)
		go func() { done <- one.do("POST", "/v1/responses", body) }()
		select {
		case again := <-done:
			if again.form["id"] != second.form["id"] || again.form["status"] != "failed" {
				t.Errorf("%s process: got %d %v, and before %v", name, again.status, again.form, second.form)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s process has not answered", name)
		}
	}
}
