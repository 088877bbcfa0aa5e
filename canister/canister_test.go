// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"encoding/json"
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

// Every kind of content keeps its metadata, and has other metadata in a copy.
func TestExtraOfEveryContent(t *testing.T) {
	own := canister.Extra{Metadata: canister.Fields{"a": json.RawMessage("1")}}
	other := canister.Extra{Unknown: canister.Fields{"b": json.RawMessage("2")}}
	for _, c := range []canister.Content{
		canister.TextContent{Text: "t", Extra: own}, canister.ImageContent{MIME: "m", Extra: own}, canister.AudioContent{MIME: "m", Extra: own},
		canister.ResourceContent{URI: "u", Extra: own}, canister.LinkContent{URI: "u", Extra: own},
		canister.StructuredContent{JSON: json.RawMessage("1"), Extra: own},
	} {
		changed := canister.WithExtra(c, other)
		if !reflect.DeepEqual(canister.ExtraOf(c), own) || !reflect.DeepEqual(canister.ExtraOf(changed), other) {
			t.Errorf("%T has %v and then %v", c, canister.ExtraOf(c), canister.ExtraOf(changed))
		}
		if back := canister.WithExtra(changed, own); !reflect.DeepEqual(back, c) {
			t.Errorf("%T becomes %+v", c, back)
		}
	}
}
