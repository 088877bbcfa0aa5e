// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
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
