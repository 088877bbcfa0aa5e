// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

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
	if failure != nil {
		content, metadata = failure.Content, failure.Metadata
		if len(content) == 0 {
			content = canister.Texts(failure.Message)
		}
	}
	w := jsonobject.New()
	structured := writeBlocks(w, content)
	switch {
	case structured != nil && (isModern || structured[0] == '{' && (t == nil || t.structuredBefore)):
		w.Raw("structuredContent", structured)
	case failure != nil && structured == nil && (t == nil || len(t.def.OutputSchema) == 0):
		// If the tool has an output schema, clients would check this against it too.
		w.Raw("structuredContent", failure.Structured().JSON)
	}
	if failure != nil {
		w.Bool("isError", true)
	}
	finish(w, isModern, false)
	w.Fields(metadata, wire.MetadataPrefix, "_meta")
	result := &rawResult{text: w.Open(), content: content, failure: failure}
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

// writeBlocks writes the member content, with a block for each piece. It returns the first
// structured content, which has its own member in the result. If this is the only content, it
// is also written as text, for clients that do not read that member (MCP 2025-11-25,
// server/tools § Structured Content). Further structured content has no such member and is
// written as text too.
func writeBlocks(w *jsonobject.Writer, content []canister.Content) (structured json.RawMessage) {
	blocks := make([]canister.Content, 0, len(content))
	for _, c := range content {
		s, ok := c.(canister.StructuredContent)
		switch {
		case ok && structured == nil && len(s.JSON) > 0:
			structured = s.JSON
		case ok:
			blocks = append(blocks, canister.Text(string(s.JSON)))
		default:
			blocks = append(blocks, c)
		}
	}
	if len(blocks) == 0 && structured != nil {
		blocks = append(blocks, canister.Text(string(structured)))
	}
	w.List("content", len(blocks), func(i int) []byte { return blockOf(blocks[i]) })
	return structured
}

// blockOf returns one block (MCP 2025-11-25, schema § ContentBlock). It restores the
// members that were kept in the metadata of content from another server.
func blockOf(c canister.Content) []byte {
	b := jsonobject.New()
	switch c := c.(type) {
	case canister.TextContent:
		if raw := c.Metadata[wire.MetadataPrefix+"block"]; len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
			return raw // of a type that only its client may know
		}
		b.Text("type", "text")
		b.Text("text", c.Text)
		b.Fields(c.Metadata, wire.MetadataPrefix)
	case canister.ImageContent:
		if c.URL != "" { // MCP has no images by URL
			return blockOf(canister.LinkContent{URI: c.URL, Name: "image", MIME: c.MIME, Extra: c.Extra})
		}
		b.Text("type", "image")
		b.Base64("data", c.Data)
		b.Text("mimeType", c.MIME)
		b.Fields(c.Metadata, wire.MetadataPrefix)
	case canister.AudioContent:
		b.Text("type", "audio")
		b.Base64("data", c.Data)
		b.Text("mimeType", c.MIME)
		b.Fields(c.Metadata, wire.MetadataPrefix)
	case canister.ResourceContent:
		b.Text("type", "resource")
		b.Raw("resource", resourceContents(c))
		b.Fields(c.Metadata, wire.MetadataPrefix)
	case canister.LinkContent:
		b.Text("type", "resource_link")
		writeLink(b, c)
	case canister.StructuredContent:
		b.Text("type", "text")
		b.Text("text", string(c.JSON))
	}
	return b.End()
}

// writeLink writes the members of a resource (MCP 2025-11-25, schema § Resource).
func writeLink(w *jsonobject.Writer, c canister.LinkContent) {
	w.Text("uri", c.URI)
	w.Text("name", cmp.Or(c.Name, c.URI)) // the member is required
	w.TextIf("title", c.Title)
	w.TextIf("description", c.Description)
	w.TextIf("mimeType", c.MIME)
	if c.Size != nil {
		w.Int("size", *c.Size)
	}
	w.Fields(c.Metadata, wire.MetadataPrefix)
}

func resourceLink(r ensemble.Resource) canister.LinkContent {
	return canister.LinkContent{
		URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME, Size: r.Size,
		Extra: canister.Extra{Metadata: r.Metadata},
	}
}

// resourceContents returns the contents of a resource (MCP 2025-11-25, schema §
// ResourceContents).
func resourceContents(c canister.ResourceContent) []byte {
	w := jsonobject.New()
	w.Text("uri", c.URI)
	w.TextIf("mimeType", c.MIME)
	if c.Blob != nil {
		w.Base64("blob", c.Blob)
	} else {
		w.Text("text", c.Text)
	}
	w.Fields(c.Metadata, wire.ResourcePrefix)
	return w.End()
}
