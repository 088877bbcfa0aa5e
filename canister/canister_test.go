// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"encoding/json"
	"reflect"
	"strings"
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

// A payload holds all fields of every kind of content, and Size and Bytes know them.
func TestPayload(t *testing.T) {
	size := int64(9)
	own := canister.Extra{Metadata: canister.Fields{"a": json.RawMessage("1")}, Unknown: canister.Fields{"b": json.RawMessage("2")}}
	for _, test := range []struct {
		c     canister.Content
		size  int
		bytes string
	}{
		{canister.TextContent{Text: "text", Extra: own}, 4, "text"},
		{canister.ImageContent{Data: []byte("pixels"), URL: "u", MIME: "m", Extra: own}, 7, "pixels"},
		{canister.AudioContent{Data: []byte("waves"), MIME: "m", Extra: own}, 5, "waves"},
		{canister.ResourceContent{URI: "u", MIME: "m", Text: "text", Blob: []byte("blob"), Extra: own}, 9, "blob"},
		{canister.LinkContent{URI: "u", Name: "n", Title: "tt", Description: "ddd", MIME: "m", Size: &size, Extra: own}, 7, ""},
		{canister.StructuredContent{JSON: json.RawMessage("{}"), Extra: own}, 2, "{}"},
	} {
		value := reflect.ValueOf(test.c)
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Fatalf("the %T of this test has no %s", test.c, value.Type().Field(i).Name)
			}
		}
		p := canister.PayloadOf(test.c)
		if back := canister.WithPayload(test.c, p); !reflect.DeepEqual(back, test.c) {
			t.Errorf("%T becomes %+v", test.c, back)
		}
		if p.Size() != test.size || string(p.Bytes()) != test.bytes || (p.Bytes() == nil) != (test.bytes == "") {
			t.Errorf("%T has the size %d and the bytes %q", test.c, p.Size(), p.Bytes())
		}
		bare := canister.PayloadOf(canister.WithPayload(test.c, canister.Payload{}))
		if bare.Size() != 0 || bare.Metadata != nil || bare.Unknown != nil {
			t.Errorf("%T has a part that its payload does not have: %+v", test.c, bare)
		}
		text, err := canister.Marshal(canister.User{Content: []canister.Content{test.c}})
		if want := `"type":"` + p.Type + `"`; err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s without %s, %v", text, want, err)
		}
	}
	for _, none := range []canister.Content{nil, &canister.TextContent{Text: "text"}} {
		p := canister.PayloadOf(none)
		if !reflect.DeepEqual(p, canister.Payload{}) || p.Bytes() != nil || canister.WithPayload(none, canister.Payload{Text: "other"}) != none {
			t.Errorf("%T has the payload %+v", none, p)
		}
	}
}
