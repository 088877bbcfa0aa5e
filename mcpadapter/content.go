// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// contentOf decodes one content block (MCP 2025-11-25, schema § ContentBlock). An
// unknown or broken block becomes its own JSON as text: the SDK would fail the whole
// result, and the model may still be able to use the text.
func contentOf(block json.RawMessage) canister.Content {
	m, err := wire.Members(block)
	if err != nil {
		return unreadable(block)
	}
	d := decoder{m: m}
	var content canister.Content
	switch d.text("type") {
	case "text":
		text := d.required("text")
		content = canister.TextContent{Text: text, Extra: d.extra("text")}
	case "image":
		content = canister.ImageContent{Data: d.bytes("data"), MIME: d.text("mimeType"), Extra: d.extra("data", "mimeType")}
	case "audio":
		content = canister.AudioContent{Data: d.bytes("data"), MIME: d.text("mimeType"), Extra: d.extra("data", "mimeType")}
	case "resource":
		content = d.resource()
	case "resource_link":
		content = d.link()
	default:
		return unreadable(block)
	}
	if d.failed {
		return unreadable(block)
	}
	return content
}

// unreadable keeps a block unchanged, as text and in the metadata.
func unreadable(block json.RawMessage) canister.Content {
	raw := compact(block)
	return canister.TextContent{Text: string(raw), Extra: canister.Extra{
		Metadata: canister.Fields{wire.MetadataPrefix + "block": raw},
	}}
}

// decoder decodes the members of one block and remembers whether any was broken.
type decoder struct {
	m      map[string]json.RawMessage
	failed bool
}

func (d *decoder) into(name string, value any) {
	if raw, ok := d.m[name]; ok && json.Unmarshal(raw, value) != nil {
		d.failed = true
	}
}

func (d *decoder) text(name string) (s string) {
	d.into(name, &s)
	return s
}

func (d *decoder) bool(name string) (b bool) {
	d.into(name, &b)
	return b
}

func (d *decoder) required(name string) string {
	if _, ok := d.m[name]; !ok {
		d.failed = true
	}
	return d.text(name)
}

// bytes decodes base64; a missing member is an error too.
func (d *decoder) bytes(name string) []byte {
	data := []byte{}
	if raw, ok := d.m[name]; !ok || json.Unmarshal(raw, &data) != nil {
		d.failed = true
	}
	return data
}

func (d *decoder) extra(known ...string) canister.Extra {
	return canister.Extra{Metadata: metadataOf(d.m, append(known, "type")...)}
}

// resource decodes an embedded resource. Members of the inner object go into the
// metadata under "mcp/resource/".
func (d *decoder) resource() canister.Content {
	inner, err := wire.Members(d.m["resource"])
	if err != nil {
		d.failed = true
		return nil
	}
	r := decoder{m: inner}
	content := canister.ResourceContent{URI: r.text("uri"), MIME: r.text("mimeType"), Text: r.text("text")}
	if _, ok := inner["blob"]; ok {
		content.Blob = r.bytes("blob")
	}
	content.Metadata = merged(metadataOf(d.m, "resource", "type"), metadataUnder(wire.ResourcePrefix, inner, "uri", "mimeType", "text", "blob"))
	d.failed = d.failed || r.failed
	return content
}

func (d *decoder) link() canister.Content {
	content := canister.LinkContent{
		URI:         d.required("uri"),
		Name:        d.text("name"),
		Title:       d.text("title"),
		Description: d.text("description"),
		MIME:        d.text("mimeType"),
		Extra:       d.extra("uri", "name", "title", "description", "mimeType", "size"),
	}
	d.into("size", &content.Size)
	return content
}
