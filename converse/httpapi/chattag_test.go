// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
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
