// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
)

func TestContentOf(t *testing.T) {
	before, after := canister.Texts("before"), canister.Texts("after")
	for _, c := range []canister.Canister{
		canister.User{Content: before}, canister.Assistant{Content: before}, canister.Supervisor{Content: before},
		canister.Document{Content: before}, canister.Result{Content: before},
	} {
		changed := canister.WithContent(c, after)
		if canister.TextOf(canister.ContentOf(c)) != "before" || canister.TextOf(canister.ContentOf(changed)) != "after" || changed.Kind() != c.Kind() {
			t.Errorf("%s: %v becomes %v", c.Kind(), c, changed)
		}
	}
	call := canister.Invocation{Name: "add"}
	if canister.ContentOf(call) != nil || !reflect.DeepEqual(canister.WithContent(call, after), canister.Canister(call)) {
		t.Error("an invocation carries something")
	}
}
