// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Content decodes one content block (MCP 2025-11-25, schema § ContentBlock). An
// unknown or broken block becomes its own JSON as text: the SDK would fail the whole
// result, and the model may still be able to use the text.
func Content(block json.RawMessage) canister.Content {
	m, err := wire.Members(block)
	if err != nil {
		return unreadable(block)
	}
	d := Object{Members: m}
	var content canister.Content
	switch d.Text("type") {
	case "text":
		text := d.required("text")
		content = canister.TextContent{Text: text, Extra: d.extra("text", "type")}
	case "image":
		content = canister.ImageContent{Data: d.bytes("data"), MIME: d.Text("mimeType"), Extra: d.extra("data", "mimeType", "type")}
	case "audio":
		content = canister.AudioContent{Data: d.bytes("data"), MIME: d.Text("mimeType"), Extra: d.extra("data", "mimeType", "type")}
	case "resource":
		content = d.Resource()
	case "resource_link":
		content = d.link()
	default:
		return unreadable(block)
	}
	if d.Failed {
		return unreadable(block)
	}
	return content
}

// unreadable keeps a block unchanged, as text and in the metadata.
func unreadable(block json.RawMessage) canister.Content {
	raw := jsontext.Compact(block)
	return canister.TextContent{Text: string(raw), Extra: canister.Extra{
		Metadata: canister.Fields{wire.MetadataPrefix + "block": raw},
	}}
}

// Contents decodes the content of a message: one block or, as some servers send it, a
// list of blocks.
func Contents(raw json.RawMessage) []canister.Content {
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) != nil {
		blocks = []json.RawMessage{raw}
	}
	var contents []canister.Content
	for _, block := range blocks {
		contents = append(contents, Content(block))
	}
	return contents
}

// Blocks splits the content of a message, which is one block or a list of blocks.
func Blocks(content json.RawMessage) (blocks []json.RawMessage) {
	if bytes.HasPrefix(content, []byte("[")) && json.Unmarshal(content, &blocks) == nil {
		return blocks
	}
	return []json.RawMessage{content}
}
