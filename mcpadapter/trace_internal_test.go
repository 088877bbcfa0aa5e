// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestCarrying(t *testing.T) {
	for before, after := range map[string]string{
		``:                                      `{"_meta":{"traceparent":"P"}}`,
		`null`:                                  `{"_meta":{"traceparent":"P"}}`,
		`{}`:                                    `{"_meta":{"traceparent":"P"}}`,
		`{"cursor":"x"}`:                        `{"_meta":{"traceparent":"P"},"cursor":"x"}`,
		`{"_meta":{}}`:                          `{"_meta":{"traceparent":"P"}}`,
		`{"_meta":{"a":1.0},"name":"b"}`:        `{"_meta":{"traceparent":"P","a":1.0},"name":"b"}`,
		`{"name":"b","arguments":{"_meta":{}}}`: `{"_meta":{"traceparent":"P"},"name":"b","arguments":{"_meta":{}}}`,
		// What the SDK does not write stays as it is.
		`{"name":"b","_meta":{}}`: `{"name":"b","_meta":{}}`,
		`[1]`:                     `[1]`,
	} {
		if got := string(carrying(json.RawMessage(before), wire.MetaCarrier{"traceparent": "P"})); got != after {
			t.Errorf("%s became %s, want %s", before, got, after)
		}
	}
	if got := string(carrying(json.RawMessage(`{"a":1}`), wire.MetaCarrier{})); got != `{"a":1}` {
		t.Errorf("nothing to carry made %s", got)
	}
}

// FuzzCarrying: valid messages stay valid, and only _meta changes.
func FuzzCarrying(f *testing.F) {
	for _, seed := range []string{`{}`, `{"_meta":{"a":{}},"b":[]}`, ` {"a":1}`, `{"_meta":{ }}`, `{"_meta":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before, err := wire.Members(text)
		if !json.Valid(text) || err != nil {
			return
		}
		after, err := wire.Members(carrying(text, wire.MetaCarrier{"traceparent": parent}))
		if err != nil {
			t.Fatalf("%s became %s: %v", text, carrying(text, wire.MetaCarrier{"traceparent": parent}), err)
		}
		delete(before, "_meta")
		delete(after, "_meta")
		if !maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s became %s", text, after)
		}
	})
}
