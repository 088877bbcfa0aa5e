// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Content is one piece of a canister's content: [TextContent], [ImageContent],
// [AudioContent], [ResourceContent], [LinkContent] or [StructuredContent], each
// held by value. The set is closed.
type Content interface {
	content() // closes the set
}

// TextContent is text in UTF-8. Text from a tool may contain invalid UTF-8; the
// JSON form keeps those bytes exactly too.
type TextContent struct {
	Text string
	Extra
}

// ImageContent is a picture, given as its bytes or as a URL that a model server
// can fetch. Exactly one of Data and URL is set.
type ImageContent struct {
	Data []byte
	URL  string
	// MIME is the media type, such as image/png. It is set with Data.
	MIME string
	Extra
}

// AudioContent is sound.
type AudioContent struct {
	Data []byte
	// MIME is the media type, such as audio/wav.
	MIME string
	Extra
}

// ResourceContent is a resource with its contents, which MCP calls an embedded
// resource. A textual resource has Text. A binary one has Blob, which is not nil
// even if it is empty.
type ResourceContent struct {
	URI  string
	MIME string // media type; may be empty
	Text string
	Blob []byte // nil for a textual resource
	Extra
}

// LinkContent refers to a resource without containing it.
type LinkContent struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string // media type; may be empty
	Size        *int64 // in bytes; nil if unknown
	Extra
}

// StructuredContent is a JSON value for programs to read.
type StructuredContent struct {
	// JSON is one valid, compact JSON text.
	JSON json.RawMessage
	Extra
}

func (TextContent) content()       {}
func (ImageContent) content()      {}
func (AudioContent) content()      {}
func (ResourceContent) content()   {}
func (LinkContent) content()       {}
func (StructuredContent) content() {}

// Payload has the parts of a content of any kind. Code that treats all kinds alike
// uses it instead of a switch, and then a new kind does not change that code. Fields
// that a kind does not have are zero.
type Payload struct {
	// Type is the name of the kind in the JSON form: text, image, audio, resource,
	// link or structured; empty if the value is not one of the kinds, held by value.
	Type string
	Text string          // of a text or a textual resource
	JSON json.RawMessage // of structured content
	Data []byte          // of an image, a sound or a binary resource
	// MIME is the media type: text/plain for a text, and application/json for
	// structured content.
	MIME                     string
	URI                      string // of a resource or a link; the URL of an image
	Name, Title, Description string // of a link
	Extra
}

// PayloadOf returns the payload of a content, which shares the content's bytes and
// maps.
func PayloadOf(c Content) Payload {
	switch c := c.(type) {
	case TextContent:
		return Payload{Type: "text", Text: c.Text, MIME: "text/plain", Extra: c.Extra}
	case ImageContent:
		return Payload{Type: "image", Data: c.Data, MIME: c.MIME, URI: c.URL, Extra: c.Extra}
	case AudioContent:
		return Payload{Type: "audio", Data: c.Data, MIME: c.MIME, Extra: c.Extra}
	case ResourceContent:
		return Payload{Type: "resource", Text: c.Text, Data: c.Blob, MIME: c.MIME, URI: c.URI, Extra: c.Extra}
	case LinkContent:
		return Payload{Type: "link", MIME: c.MIME, URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, Extra: c.Extra}
	case StructuredContent:
		return Payload{Type: "structured", JSON: c.JSON, MIME: "application/json", Extra: c.Extra}
	}
	return Payload{}
}

// WithPayload returns a copy of c with the fields of p that its kind has; Type, and the
// media type of a text or of structured content, cannot change.
func WithPayload(c Content, p Payload) Content {
	switch c := c.(type) {
	case TextContent:
		return TextContent{p.Text, p.Extra}
	case ImageContent:
		return ImageContent{p.Data, p.URI, p.MIME, p.Extra}
	case AudioContent:
		return AudioContent{p.Data, p.MIME, p.Extra}
	case ResourceContent:
		return ResourceContent{p.URI, p.MIME, p.Text, p.Data, p.Extra}
	case LinkContent:
		return LinkContent{p.URI, p.Name, p.Title, p.Description, p.MIME, c.Size, p.Extra}
	case StructuredContent:
		return StructuredContent{p.JSON, p.Extra}
	}
	return c
}

// Size returns the number of bytes of text and data.
func (p Payload) Size() int {
	return len(p.Text) + len(p.JSON) + len(p.Data) + len(p.URI) + len(p.Name) + len(p.Title) + len(p.Description)
}

// Bytes returns the text, the JSON or the data, or nil if the content has none of
// these.
func (p Payload) Bytes() []byte {
	switch {
	case p.Data != nil:
		return p.Data
	case p.JSON != nil:
		return p.JSON
	case p.Type == "text" || p.Type == "resource":
		return []byte(p.Text)
	}
	return nil
}

// Text returns s as a piece of content.
func Text(s string) TextContent { return TextContent{Text: s} }

// Texts returns each string as a piece of content, for use in a canister.
func Texts(ss ...string) []Content {
	contents := make([]Content, len(ss))
	for i, s := range ss {
		contents[i] = Text(s)
	}
	return contents
}

// TextOf returns the text of all [TextContent] in contents, joined with newlines.
// Other types are skipped.
func TextOf(contents []Content) string {
	var texts []string
	for _, c := range contents {
		if t, ok := c.(TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c *TextContent) members() []member {
	return []member{
		{"type", label("text")},
		{"text", (*text)(&c.Text)},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

func (c *ImageContent) members() []member {
	return []member{
		{"type", label("image")},
		{"mime", (*text)(&c.MIME)},
		{"data", (*data)(&c.Data)},
		{"url", (*text)(&c.URL)},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

func (c *AudioContent) members() []member {
	return []member{
		{"type", label("audio")},
		{"mime", (*text)(&c.MIME)},
		{"data", (*data)(&c.Data)},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

func (c *ResourceContent) members() []member {
	return []member{
		{"type", label("resource")},
		{"uri", (*text)(&c.URI)},
		{"mime", (*text)(&c.MIME)},
		{"text", (*text)(&c.Text)},
		{"blob", (*data)(&c.Blob)},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

func (c *LinkContent) members() []member {
	return []member{
		{"type", label("link")},
		{"uri", (*text)(&c.URI)},
		{"name", (*text)(&c.Name)},
		{"title", (*text)(&c.Title)},
		{"description", (*text)(&c.Description)},
		{"mime", (*text)(&c.MIME)},
		{"size", &size{&c.Size}},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

func (c *StructuredContent) members() []member {
	return []member{
		{"type", label("structured")},
		{"json", (*raw)(&c.JSON)},
		{"metadata", (*fields)(&c.Metadata)},
	}
}

// appendContent appends the JSON form of a content.
func appendContent(dst []byte, c Content) ([]byte, error) {
	switch c := c.(type) {
	case TextContent:
		return appendObject(dst, c.members(), c.Unknown)
	case ImageContent:
		return appendObject(dst, c.members(), c.Unknown)
	case AudioContent:
		return appendObject(dst, c.members(), c.Unknown)
	case ResourceContent:
		return appendObject(dst, c.members(), c.Unknown)
	case LinkContent:
		return appendObject(dst, c.members(), c.Unknown)
	case StructuredContent:
		return appendObject(dst, c.members(), c.Unknown)
	}
	return nil, fmt.Errorf("%T is not one of the types of content, held by value", c)
}

// contentOf reads a content from its members.
func contentOf(members []rawMember) (Content, error) {
	kind, err := readLabel(members, "type")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "text":
		return read[TextContent](members)
	case "image":
		return read[ImageContent](members)
	case "audio":
		return read[AudioContent](members)
	case "resource":
		return read[ResourceContent](members)
	case "link":
		return read[LinkContent](members)
	case "structured":
		return read[StructuredContent](members)
	}
	return nil, fmt.Errorf("unknown content type %s: want text, image, audio, resource, link or structured", clip(kind))
}
