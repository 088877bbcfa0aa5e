// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// TestCancelledStreams: a turn that is cancelled while its answer is streamed ends its stream as
// cancelled, and not with an error, and the note for the model is not an answer.
func TestCancelledStreams(t *testing.T) {
	for path, c := range map[string]struct {
		body object
		last func(last object) bool
	}{
		"/v1/chat/completions": {object{"messages": []object{user("block")}, "stream": true}, func(last object) bool {
			choices, is := last["choices"].([]any)
			return is && choices[0].(object)["finish_reason"] == "stop"
		}},
		"/v1/responses": {object{"input": "block", "stream": true}, func(last object) bool {
			return last["type"] == "response.incomplete" && last["response"].(object)["status"] == "cancelled"
		}},
		"/agui": {object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "block"}}}, func(last object) bool {
			// AG-UI's client refuses an event with an outcome that it does not know.
			return last["type"] == "RUN_FINISHED" && last["outcome"] == nil && last["result"].(object)["reason"] == "cancelled"
		}},
	} {
		s := serve(t, echo, nil, nil)
		response := s.request("POST", path, c.body)
		id, all, last := response.Header.Get("Consort-Conversation"), "", object{}
		err := readStream(response, func(e streamed) bool {
			if all += e.data; strings.Contains(e.data, "one ") && len(last) == 0 {
				s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
			}
			if strings.Contains(e.data, "one ") || len(last) > 0 {
				if e.data == "[DONE]" {
					return true
				}
				last = object{}
				if err := json.Unmarshal([]byte(e.data), &last); err != nil {
					t.Fatal(err)
				}
			}
			return true
		})
		if err != nil || !c.last(last) || strings.Contains(all, "was cancelled by") {
			t.Errorf("%s: %v, the stream is %s", path, err, all)
		}
	}
}

// stuck is a response whose client reads nothing until it leaves.
type stuck struct {
	recorded
	gone  context.Context
	begun func()
}

func (s *stuck) Write([]byte) (int, error) {
	s.begun()
	<-s.gone.Done()
	return 0, s.gone.Err()
}

// TestClientThatLeavesLate: a client that leaves when its turn is over, before it has read the end, does
// not cancel the turn of the next message.
func TestClientThatLeavesLate(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	_, length := s.ended(id, 0)
	handler := httpapi.New(s.feed, &httpapi.Options{Owner: func(context.Context) (string, error) { return "owner-ann", nil }})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body := strings.NewReader(`{"input":"one","stream":true,"conversation":"` + id + `"}`)
	request, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/v1/responses", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	begun, done := make(chan struct{}), make(chan struct{})
	w := &stuck{recorded: recorded{header: http.Header{}}, gone: ctx, begun: sync.OnceFunc(func() { close(begun) })}
	go func() {
		defer close(done)
		handler.ServeHTTP(w, request)
	}()
	<-begun
	s.ended(id, length+1)
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", object{"message": "block"})
	leave()
	<-done
	for _, message := range ofKind[canister.Assistant](s, id) {
		if message.Finish == canister.FinishCancelled {
			t.Errorf("the turn of the next message was cancelled: %v", s.wholeLog(id))
		}
	}
	if got := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; got != "open" {
		t.Errorf("the conversation is %v", got)
	}
}

// TestClientThatLeavesItsCancel: a cancel takes effect also if its client leaves before the turn has stopped. It
// turns red if the engine gets the context of the request, or turncancel.Limit is 20 s: the turn stops, and the model is
// asked again.
func TestClientThatLeavesItsCancel(t *testing.T) {
	for _, request := range []string{"POST /api/conversations/ID/cancel", "DELETE /api/conversations/ID", "POST /v1/responses/resp_ID_0/cancel"} {
		synctest.Test(t, func(t *testing.T) {
			asked, release := 0, make(chan struct{})
			local, store := engineOf(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
				if asked++; asked > 1 {
					say(request, "again", yield)
					return
				}
				<-release // what it does cannot be stopped
				yield(nil, ctx.Err())
			})
			feed := httpapi.NewFeed(local, store)
			defer feed.Close()
			const id = "slow"
			if err := local.Send(t.Context(), id, canister.User{Content: canister.Texts("hello")}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			handler, done := httpapi.New(feed, nil), make(chan struct{})
			ctx, leave := context.WithCancel(t.Context())
			method, path, _ := strings.Cut(strings.ReplaceAll(request, "ID", id), " ")
			r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer close(done)
				handler.ServeHTTP(&recorded{header: http.Header{}}, r)
			}()
			synctest.Wait()
			leave()
			<-done
			close(release)
			time.Sleep(time.Hour) // any retry
			if _, err := store.Info(t.Context(), id); asked != 1 || method == "DELETE" && !errors.Is(err, history.ErrNotFound) {
				t.Errorf("%s: the model was asked %d times; the conversation: %v", request, asked, err)
			}
		})
	}
}

// neverCancels is an engine that cannot end a turn.
type neverCancels struct{ engine.Engine }

func (neverCancels) Cancel(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCancelThatDoesNotEnd: it waits as long as its client stays, and a limited time longer.
func TestCancelThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, store := engineOf(t, echo)
		feed := httpapi.NewFeed(neverCancels{local}, store)
		defer feed.Close()
		if err := local.Send(t.Context(), "one", canister.User{Content: canister.Texts("hello")}); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Hour)
		defer leave()
		r, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/api/conversations/one/cancel", nil)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		httpapi.New(feed, nil).ServeHTTP(&recorded{header: http.Header{}}, r)
		if took := time.Since(begun); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
