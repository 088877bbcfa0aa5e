// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

// An event whose canister is not the one of the history shows it.
func TestEventsShowWhatDiffers(t *testing.T) {
	invocation := canister.Invocation{Head: canister.Head{ID: "x"}, CallID: "y", Name: "a"}
	result := canister.Result{Head: canister.Head{ID: "z"}, Invocation: "x", Content: canister.Texts("one")}
	other := result
	other.Content = canister.Texts("two")
	for _, test := range []struct {
		name    string
		history []canister.Canister
		want    string
	}{
		{"the same", []canister.Canister{invocation, result}, `"canister":"r1"}`},
		{"not yet", []canister.Canister{invocation}, `"canister":"r1"}`},
		{"another", []canister.Canister{invocation, other},
			`"canister":{"kind":"result","id":"r1","invocation":"i1","content":[{"type":"text","text":"one"}]}}`},
	} {
		line, err := newAliases(test.history).line(converse.InvocationCompleted{Invocation: invocation, Result: result})
		if want := `{"event":"invocation_completed","invocation":"i1","name":"a",` + test.want; err != nil || line != want {
			t.Errorf("%s: %v\n got %s\nwant %s", test.name, err, line, want)
		}
	}
}
