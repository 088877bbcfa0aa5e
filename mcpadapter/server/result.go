// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// resultOf returns the result of a call (MCP 2025-11-25, server/tools § Tool Result),
// and its content.
func resultOf(t *offeredTool, output invoker.Output, failure *invoker.Failure, isModern bool) (*rawResult, []canister.Content) {
	content, metadata := output.Content, output.Metadata
	var structured json.RawMessage
	if failure != nil {
		content, metadata = failure.Content, failure.Metadata
		if len(content) == 0 {
			content = canister.Texts(failure.Message)
		}
	}
	w := newObject()
	w.key("content")
	w.byte('[')
	structured = w.blocks(content)
	w.byte(']')
	switch {
	case structured != nil && (isModern || structured[0] == '{' && (t == nil || t.structuredBefore)):
		w.raw("structuredContent", structured)
	case failure != nil && structured == nil && (t == nil || len(t.def.OutputSchema) == 0):
		// If the tool has an output schema, clients would check this against it too.
		w.raw("structuredContent", failure.Structured().JSON)
	}
	if failure != nil {
		w.bool("isError", true)
	}
	w.finish(isModern, false)
	w.fields(metadata, wire.MetadataPrefix, "_meta")
	result := &rawResult{text: w.open(), content: content, failure: failure}
	result.Meta = passedMeta(metadata[wire.MetadataPrefix+"_meta"])
	if failure != nil {
		result.SetMeta(wire.WithMeta(result.Meta, mcpadapter.FailureKey, failure.Structured().JSON))
	}
	return result, content
}

// passedMeta returns the _meta of a roster server's result, without FailureKey and the
// members that belong to the connection with that server.
func passedMeta(said json.RawMessage) map[string]any {
	members, err := wire.Members(said)
	if err != nil {
		return nil
	}
	var meta map[string]any
	for name, value := range members {
		if !strings.HasPrefix(name, "io.modelcontextprotocol/") && name != mcpadapter.FailureKey {
			meta = wire.WithMeta(meta, name, value)
		}
	}
	return meta
}

// blocks writes content as blocks. It returns the first structured content, which has
// its own member in the result. If this is the only content, it is also written as
// text, for clients that do not read that member (MCP 2025-11-25, server/tools §
// Structured Content). Further structured content has no such member and is written as
// text too.
func (w *object) blocks(content []canister.Content) (structured json.RawMessage) {
	n := 0
	block := func(c canister.Content) {
		if n++; n > 1 {
			w.byte(',')
		}
		w.block(c)
	}
	for _, c := range content {
		s, ok := c.(canister.StructuredContent)
		switch {
		case ok && structured == nil && len(s.JSON) > 0:
			structured = s.JSON
		case ok:
			block(canister.Text(string(s.JSON)))
		default:
			block(c)
		}
	}
	if n == 0 && structured != nil {
		block(canister.Text(string(structured)))
	}
	return structured
}

// block writes one block (MCP 2025-11-25, schema § ContentBlock). It restores the
// members that were kept in the metadata of content from another server.
func (w *object) block(c canister.Content) {
	b := newObject()
	switch c := c.(type) {
	case canister.TextContent:
		if raw := c.Metadata[wire.MetadataPrefix+"block"]; len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
			w.write(raw) // of a type that only its client may know
			return
		}
		b.text("type", "text")
		b.text("text", c.Text)
		b.fields(c.Metadata, wire.MetadataPrefix)
	case canister.ImageContent:
		if c.URL != "" { // MCP has no images by URL
			w.block(canister.LinkContent{URI: c.URL, Name: "image", MIME: c.MIME, Extra: c.Extra})
			return
		}
		b.text("type", "image")
		b.base64("data", c.Data)
		b.text("mimeType", c.MIME)
		b.fields(c.Metadata, wire.MetadataPrefix)
	case canister.AudioContent:
		b.text("type", "audio")
		b.base64("data", c.Data)
		b.text("mimeType", c.MIME)
		b.fields(c.Metadata, wire.MetadataPrefix)
	case canister.ResourceContent:
		b.text("type", "resource")
		b.raw("resource", resourceContents(c))
		b.fields(c.Metadata, wire.MetadataPrefix)
	case canister.LinkContent:
		b.text("type", "resource_link")
		b.link(c)
	case canister.StructuredContent:
		b.text("type", "text")
		b.text("text", string(c.JSON))
	}
	w.write(b.end())
}

// link writes the members of a resource (MCP 2025-11-25, schema § Resource).
func (w *object) link(c canister.LinkContent) {
	w.text("uri", c.URI)
	w.text("name", named(c.Name, c.URI))
	w.textIf("title", c.Title)
	w.textIf("description", c.Description)
	w.textIf("mimeType", c.MIME)
	if c.Size != nil {
		w.int("size", *c.Size)
	}
	w.fields(c.Metadata, wire.MetadataPrefix)
}

func resourceLink(r ensemble.Resource) canister.LinkContent {
	return canister.LinkContent{
		URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME, Size: r.Size,
		Extra: canister.Extra{Metadata: r.Metadata},
	}
}

// named returns the name, or the URI if the name is empty, because the member is
// required.
func named(name, uri string) string { return cmp.Or(name, uri) }

// resourceContents returns the contents of a resource (MCP 2025-11-25, schema §
// ResourceContents).
func resourceContents(c canister.ResourceContent) []byte {
	w := newObject()
	w.text("uri", c.URI)
	w.textIf("mimeType", c.MIME)
	if c.Blob != nil {
		w.base64("blob", c.Blob)
	} else {
		w.text("text", c.Text)
	}
	w.fields(c.Metadata, wire.ResourcePrefix)
	return w.end()
}
