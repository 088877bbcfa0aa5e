// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/invoker"
)

// TestAForkIsAdmittedAgain: a request that continues a fork asks for the same each time that it is sent, so that an
// approval holds for its repetition. Nothing is left of the fork of one that was refused.
func TestAForkIsAdmittedAgain(t *testing.T) {
	var mu sync.Mutex
	var entries []httpapi.Entry
	isRefusing := false
	s := serve(t, echo, nil, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			mu.Lock()
			defer mu.Unlock()
			entries = append(entries, entry)
			if isRefusing {
				return invoker.Failf(invoker.Conflict, "This needs an approval.")
			}
			return enter(ctx)
		}
	})
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "one"})
	id := first.header.Get("Consort-Conversation")
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "two", "previous_response_id": first.form["id"]})
	answer := "You said: one"
	chat := object{"messages": []object{user("one"), {"role": "assistant", "content": answer}, user("three")}}
	begun := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("one")}}).header.Get("Consort-Conversation")
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+begun+"/messages", object{"message": "two"})
	s.ended(begun, 3)
	for _, c := range []struct {
		path, conversation string
		body               object
	}{
		{"/v1/responses", id, object{"input": "three", "previous_response_id": first.form["id"]}},
		{"/v1/chat/completions", begun, chat},
	} {
		entries = nil
		for _, isRefusing = range []bool{true, true, false} {
			s.do("POST", c.path, c.body)
		}
		for _, entry := range entries {
			if entry.Conversation != c.conversation || entry.ForkedAt != 2 {
				t.Errorf("%s: it enters %q at %d, want %q at 2", c.path, entry.Conversation, entry.ForkedAt, c.conversation)
			}
		}
		if len(entries) != 3 {
			t.Errorf("%s: %d entries", c.path, len(entries))
		}
	}
	if all := s.want(http.StatusOK, "GET", "/api/conversations", nil).form["conversations"].([]any); len(all) != 4 {
		t.Errorf("%d conversations, want two and a fork of each", len(all))
	}
}

// TestAForkDoesNotGoOnByItself: a fork in the middle of a turn is continued by a message, which is admitted, and by no
// engine that starts later.
func TestAForkDoesNotGoOnByItself(t *testing.T) {
	store, asked := history.NewMemory(), make(chan string, 9)
	counts := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		asked <- lastText(request)
		echo(ctx, request, yield)
	}
	var admitted atomic.Int64
	admits := func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			admitted.Add(1)
			return enter(ctx)
		}
	}
	before := serveStore(t, store, nil, counts, nil, admits)
	id := before.create("one")
	before.ended(id, 0)
	fork := before.want(http.StatusCreated, "POST", "/api/conversations/"+id+"/fork", object{"position": 1}).form["id"].(string)
	if err := before.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := serveStore(t, store, nil, counts, nil, admits)
	s.ended(s.create("two"), 0) // the engine has searched the store by then, or finds the fork meanwhile
	said := s.want(http.StatusOK, "GET", "/api/conversations/"+fork+"/history", nil).form["canisters"].([]any)[0].(object)["canister"].(object)
	if info, err := store.Info(t.Context(), fork); err != nil || info.Length != 1 {
		t.Errorf("before it is resumed, the fork has %d canisters, %v", info.Length, err)
	}
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+fork+"/messages", object{"message": "one", "id": said["id"]})
	if _, length := s.ended(fork, 0); length != 2 {
		t.Errorf("the fork has %d canisters", length)
	}
	close(asked)
	if texts := slices.Collect(channel(asked)); !slices.Equal(texts, []string{"one", "two", "one"}) || admitted.Load() != 3 {
		t.Errorf("the model was asked %q, for %d admitted messages", texts, admitted.Load())
	}
}

func channel[T any](c <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for one := range c {
			if !yield(one) {
				return
			}
		}
	}
}
