// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/notes"
)

// TestArgumentsOf: an approval, a rule and the audit see all texts that enter with a message. The message comes first,
// because the audit cuts long arguments off.
func TestArgumentsOf(t *testing.T) {
	for _, c := range []struct {
		entry httpapi.Entry
		want  string
	}{
		{httpapi.Entry{Conversation: "c", Canister: canister.User{Content: canister.Texts("hello")}}, `{"conversation":"c","message":"hello"}`},
		{httpapi.Entry{Conversation: "c", ForkedAt: 2, Canister: canister.User{Content: canister.Texts("hello")}}, `{"conversation":"c","forked_at":2,"message":"hello"}`},
		{httpapi.Entry{Conversation: "c", Canister: canister.Answer{Wait: "w", Verdict: canister.VerdictAllow}},
			`{"conversation":"c","verdict":"allow","wait":"w"}`},
		{httpapi.Entry{Canister: canister.User{}}, `{"message":""}`},
		{httpapi.Entry{Canister: canister.User{Content: canister.Texts("go")}, Earlier: []canister.Canister{
			canister.Supervisor{Content: canister.Texts("Obey.")},
			canister.Assistant{Content: canister.Texts("I look.")},
			canister.Invocation{Name: "pay", Arguments: `{"to":"Ann"}`},
			canister.Result{Content: canister.Texts("paid")},
		}}, `{"message":"go","earlier":[{"kind":"supervisor","message":"Obey."},{"kind":"assistant","message":"I look."},` +
			`{"kind":"invocation","message":"pay {\"to\":\"Ann\"}"},{"kind":"result","message":"paid"}]}`},
	} {
		if got, err := argumentsOf(c.entry); err != nil || string(got) != c.want {
			t.Errorf("the arguments are %s, %v, want %s", got, err, c.want)
		}
	}
}

// Whatever enters with a message or an answer changes its arguments, so an approval of another one does not hold
// for it.
func TestArgumentsBindAllThatEnters(t *testing.T) {
	user := func(more ...canister.Content) canister.User {
		return canister.User{Content: append(canister.Texts("look"), more...)}
	}
	withTools := user()
	withTools.Metadata = canister.Fields{notes.ClientToolsKey: json.RawMessage(`[{"name":"show"}]`)}
	image, other := canister.ImageContent{Data: []byte("one"), MIME: "image/png"}, canister.ImageContent{Data: []byte("two"), MIME: "image/png"}
	past := func(c canister.Canister) httpapi.Entry {
		return httpapi.Entry{Canister: user(), Earlier: []canister.Canister{c}}
	}
	answer := canister.Answer{Wait: "w", Verdict: canister.VerdictChange}
	because, changed, with := answer, answer, answer
	because.Reason, changed.Arguments, with.Content = "why not", json.RawMessage(`{"to":"Eve"}`), canister.Texts("sent")
	seen := map[string]int{}
	for i, entry := range []httpapi.Entry{
		{Canister: user()}, {Canister: withTools}, {Canister: user(image)}, {Canister: user(other)}, {Canister: user(canister.ImageContent{URL: "https://h/a.png"})},
		{Canister: user(canister.ResourceContent{URI: "file:///a", Text: "one"})}, {Canister: user(canister.ResourceContent{URI: "file:///a", Text: "two"})},
		{Canister: user(canister.ResourceContent{URI: "file:///a", Blob: []byte("one")})}, {Canister: user(canister.LinkContent{URI: "file:///a", Name: "a"})},
		{Canister: user(canister.StructuredContent{JSON: json.RawMessage(`{"a":1}`)})}, {Canister: user(canister.StructuredContent{JSON: json.RawMessage(`{"a":2}`)})},
		past(user()), past(user(image)), past(user(other)), past(withTools),
		{Canister: answer}, {Canister: because}, {Canister: changed}, {Canister: with},
	} {
		arguments, err := argumentsOf(entry)
		if before, ok := seen[string(arguments)]; ok || err != nil {
			t.Errorf("entry %d has the arguments of entry %d: %s, %v", i, before, arguments, err)
		}
		seen[string(arguments)] = i
		if strings.Contains(string(arguments), "b25l") { // one, in base64
			t.Errorf("the arguments have the bytes: %s", arguments)
		}
	}
}
