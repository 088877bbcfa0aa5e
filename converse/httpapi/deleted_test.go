// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/consort-go/consort/converse/history"
)

// TestMessageToADeletedConversation: a message whose conversation is deleted while it arrives does
// not begin it again, without an owner.
func TestMessageToADeletedConversation(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 1)
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.server.URL+"/api/conversations/"+id+"/messages", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(who, "ann")
	request.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		response, err := s.server.Client().Do(request)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	if _, err := writer.Write([]byte(`{"message":`)); err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusNoContent, "DELETE", "/api/conversations/"+id, nil)
	if _, err := writer.Write([]byte(`"hello"}`)); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if got := <-status; got != http.StatusNotFound {
		t.Errorf("got %d", got)
	}
	if info, err := s.store.Info(t.Context(), id); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("the conversation is there again: %+v, %v", info, err)
	}
}

// TestThreadThatWasDeleted: a thread that begins again after it was deleted is a new one.
func TestThreadThatWasDeleted(t *testing.T) {
	s := serve(t, echo, nil, nil)
	message := func(id, text string) object {
		return object{"threadId": "t", "messages": []object{{"id": id, "role": "user", "content": text}}}
	}
	if _, text, _ := s.run(message("m1", "old")); text != "You said: old" {
		t.Fatalf("the text is %q", text)
	}
	for info := range s.store.List(t.Context(), history.Filter{Owner: "owner-ann"}) {
		s.want(http.StatusNoContent, "DELETE", "/api/conversations/"+info.ID, nil)
	}
	if types, text, last := s.run(message("m2", "new")); text != "You said: new" || last["type"] != "RUN_FINISHED" {
		t.Errorf("the text is %q, the events %q", text, types)
	}
}

// TestRefusedForks: a refused request that continues an earlier response leaves no fork.
func TestRefusedForks(t *testing.T) {
	refused := false
	s := serve(t, echo, nil, refusing(&refused))
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "one"}).form
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "two", "previous_response_id": first["id"]})
	refused = true
	s.want(http.StatusTooManyRequests, "POST", "/v1/responses", object{"input": "three", "previous_response_id": first["id"]})
	n := 0
	for range s.store.List(t.Context(), history.Filter{}) {
		n++
	}
	if n != 1 {
		t.Errorf("there are %d conversations", n)
	}
}
