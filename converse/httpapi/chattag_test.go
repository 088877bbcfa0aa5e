// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// Two chats whose texts are the same, but not the calls of the client, stay two conversations.
func TestChatsThatDifferInTheirCalls(t *testing.T) {
	var n atomic.Int64
	s := serve(t, func(ctx context.Context, r *converse.Request, yield func(converse.ModelEvent, error) bool) {
		switch last := r.History[len(r.History)-1]; {
		case last.Kind() == canister.KindResult:
			say(r, "done", yield)
		case lastText(r) == "go":
			call(r, "", "pick", `{"what":"`+strings.Repeat("x", int(n.Add(1)))+`"}`, yield)
		default:
			say(r, "more", yield)
		}
	}, nil, nil)
	var chats [2][]object
	var ids [2]string
	for i := range chats {
		messages := []object{user("go")}
		first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": chatTools("pick")})
		message, calls := chatCalls(t, first)
		ids[i] = first.header.Get("Consort-Conversation")
		messages = append(messages, message, toolMessage(calls["pick"], "ok"))
		s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": chatTools("pick")})
		chats[i] = append(messages, assistant("done"), user("again"))
	}
	for i, messages := range chats {
		a := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": chatTools("pick")})
		if got := a.header.Get("Consort-Conversation"); got != ids[i] {
			t.Errorf("chat %d of %q went on in %s", i, ids, got)
		}
	}
}

// tagging is a store in which another program sets a tag just before each change of the tags of a chat.
type tagging struct{ history.Store }

func (s tagging) Describe(ctx context.Context, id string, change history.Change) error {
	if change.Title == nil && change.Owner == nil {
		info, err := s.Store.Info(ctx, id)
		if err != nil {
			return err
		}
		keep := append(info.Tags, "keep")
		if err := s.Store.Describe(ctx, id, history.Change{Tags: &keep}); err != nil {
			return err
		}
	}
	return s.Store.Describe(ctx, id, change)
}

// TestTagsOfOthersStay: a tag that is set while an answer ends is not lost.
func TestTagsOfOthersStay(t *testing.T) {
	store := tagging{history.NewMemory()}
	s := serveStore(t, store, nil, echo, nil, nil)
	id := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("one")}}).header.Get("Consort-Conversation")
	if info, err := store.Info(t.Context(), id); err != nil || !slices.Contains(info.Tags, "keep") || len(info.Tags) != 3 {
		t.Errorf("the tags are %q, %v", info.Tags, err)
	}
}
