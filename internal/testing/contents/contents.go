// SPDX-License-Identifier: Apache-2.0

// Package contents has one sample of each kind of content, for tests that must hold for
// all of them.
package contents

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
)

// All returns one sample of each kind of content.
func All() []canister.Content {
	return []canister.Content{
		canister.TextContent{Text: "text"},
		canister.ImageContent{Data: []byte("image"), MIME: "image/png"},
		canister.AudioContent{Data: []byte("audio"), MIME: "audio/wav"},
		canister.ResourceContent{URI: "file:///a", Text: "text", MIME: "text/plain"},
		canister.LinkContent{URI: "file:///b", Name: "b"},
		canister.StructuredContent{JSON: json.RawMessage(`{"a":1}`)},
	}
}
