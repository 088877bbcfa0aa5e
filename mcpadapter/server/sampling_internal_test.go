// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Metadata that the SDK cannot read are left out, and the content is not.
func TestContentWithOddMetadata(t *testing.T) {
	for metadata, want := range map[string]string{
		`{"annotations":{"priority":1},"_meta":{"a":1}}`:            `{"type":"text","text":"hi","_meta":{"a":1},"annotations":{"priority":1}}`,
		`{"annotations":{"priority":"high"}}`:                       `{"type":"text","text":"hi"}`,
		`{"block":{"type":"resource","resource":{"uri":"x:y"}}}`:    `{"type":"text","text":"hi"}`,
		`{"block":{"type":"unheard-of"},"annotations":["strange"]}`: `{"type":"text","text":"hi"}`,
	} {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(metadata), &members); err != nil {
			t.Fatal(err)
		}
		fields := canister.Fields{}
		for name, value := range members {
			fields[wire.MetadataPrefix+name] = value
		}
		block, err := sampleContent(canister.TextContent{Text: "hi", Extra: canister.Extra{Metadata: fields}})
		if err != nil {
			t.Errorf("%s: %v", metadata, err)
			continue
		}
		if got, _ := json.Marshal(block); string(got) != want {
			t.Errorf("%s: %s, want %s", metadata, got, want)
		}
	}
}
