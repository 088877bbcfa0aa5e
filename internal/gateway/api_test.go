// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/httpapi"
)

// TestArgumentsOf: an approval, a rule and the audit see all texts that enter with a message. The message comes first,
// because the audit cuts long arguments off.
func TestArgumentsOf(t *testing.T) {
	for _, c := range []struct {
		entry httpapi.Entry
		want  string
	}{
		{httpapi.Entry{Conversation: "c", Canister: canister.User{Content: canister.Texts("hello")}}, `{"conversation":"c","message":"hello"}`},
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
		if got := string(argumentsOf(c.entry)); got != c.want {
			t.Errorf("the arguments are %s, want %s", got, c.want)
		}
	}
}
