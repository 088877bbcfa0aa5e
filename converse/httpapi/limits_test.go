// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// TestTurnsAndLimits: a turn that has had as many exchanges as the default allows is under way
// if its limit is higher, and is over if its limit was reached.
func TestTurnsAndLimits(t *testing.T) {
	store := history.NewMemory()
	silent := func(_ context.Context, r *converse.Request, yield func(converse.ModelEvent, error) bool) {
		say(r, "", yield)
	}
	for limit, want := range map[int][2]string{
		0: {"done", "incomplete"}, 16: {"done", "incomplete"}, 17: {"open", "in_progress"}, -1: {"open", "in_progress"},
	} {
		limits := func() converse.Limits { return converse.Limits{Exchanges: limit} }
		s := serveStore(t, store, nil, silent, nil, func(o *httpapi.Options) { o.Limits = limits })
		id := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "begin"}).form["id"].(string)
		conversation := s.want(http.StatusOK, "GET", "/v1/responses/"+id, nil).form["conversation"].(object)["id"].(string)
		if err := s.store.Append(t.Context(), conversation, 2, exchanges(16)...); err != nil {
			t.Fatal(err)
		}
		if got := s.want(http.StatusOK, "GET", "/api/conversations/"+conversation, nil).form["state"]; got != want[0] {
			t.Errorf("with the limit %d the conversation is %v, want %s", limit, got, want[0])
		}
		if got := s.want(http.StatusOK, "GET", "/v1/responses/resp_"+conversation+"_2", nil).form["status"]; got != want[1] {
			t.Errorf("with the limit %d the response is %v, want %s", limit, got, want[1])
		}
	}
}

// exchanges returns a turn in which a model has called a tool so often.
func exchanges(n int) []canister.Canister {
	turn := []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go on")}}
	for i := range n {
		a, call, result := fmt.Sprint("a", i), fmt.Sprint("c", i), fmt.Sprint("r", i)
		turn = append(turn, canister.Assistant{Head: canister.Head{ID: a}, Model: "test", Finish: canister.FinishInvocations},
			canister.Invocation{Head: canister.Head{ID: call}, Message: a, CallID: call, Name: "local__do", Arguments: `{"what":"it"}`},
			canister.Result{Head: canister.Head{ID: result}, Invocation: call, Content: canister.Texts("did it")})
	}
	return turn
}

// TestStreamsOfAnswers: streamed answers count as streams of their owner, and one too many is refused
// before anything is stored.
func TestStreamsOfAnswers(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxStreams = 1 })
	id := s.create("hello")
	s.ended(id, 0)
	messages := []object{{"id": "m", "role": "user", "content": "block"}}
	requests := map[string]object{
		"/v1/chat/completions": {"messages": messages, "stream": true}, "/v1/responses": {"input": "block", "stream": true},
		"/agui": {"threadId": "t", "runId": "r", "messages": messages},
	}
	refused := func(method, path string, body any) {
		t.Helper()
		response := s.request(method, path, body)
		defer response.Body.Close()
		if response.StatusCode != http.StatusTooManyRequests { // a stream that has begun does not end
			t.Fatalf("%s %s: status %d", method, path, response.StatusCode)
		}
		a := s.want(http.StatusTooManyRequests, method, path, body)
		e, _ := a.form["error"].(object)
		if e["code"] != "too_many_streams" || e["type"] == "" || e["advice"] == "" || a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %s", path, a.text)
		}
	}
	for path, body := range requests {
		response := s.open("POST", path, body)
		refused("GET", "/api/conversations/"+id+"/events", nil)
		before := s.want(http.StatusOK, "GET", "/api/conversations", nil).form["conversations"].([]any)
		for other, body := range requests {
			refused("POST", other, body)
		}
		after := s.want(http.StatusOK, "GET", "/api/conversations", nil).form["conversations"].([]any)
		if len(after) != len(before) {
			t.Errorf("%d conversations were %d before", len(after), len(before))
		}
		s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello"}) // not a stream
		s.as("bob").open("GET", "/api/conversations/"+s.as("bob").create("hello")+"/events", nil).Body.Close()
		response.Body.Close() // which cancels the turn
	}
}

// TestHeadOfAStream: a HEAD request of a stream ends, and is not a stream that is open.
func TestHeadOfAStream(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxStreams = 1 })
	at := "/api/conversations/" + s.create("hello") + "/events"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		request, err := http.NewRequestWithContext(ctx, "HEAD", s.server.URL+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(who, "ann")
		response, err := s.server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
			t.Errorf("status %d, Content-Type %q", response.StatusCode, kind)
		}
	}
}

// open begins a stream, again while the server has not yet noticed that the one before was closed.
func (s *served) open(method, path string, body any, headers ...string) *http.Response {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		response := s.request(method, path, body, headers...)
		if response.StatusCode == http.StatusOK {
			return response
		}
		response.Body.Close()
		if response.StatusCode != http.StatusTooManyRequests || time.Now().After(deadline) {
			s.t.Fatalf("%s %s: status %d", method, path, response.StatusCode)
		}
	}
}
