// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"strings"
)

// Content is one piece of what a canister carries: [TextContent],
// [ImageContent], [AudioContent], [ResourceContent], [LinkContent] or
// [StructuredContent], each held by value. The set is closed.
type Content interface {
	content() // closes the set
}

// TextContent is text, in UTF-8. Text from a tool may hold bytes that are not;
// the JSON form keeps those exactly too.
type TextContent struct {
	Text string
	Extra
}

// ImageContent is a picture: its bytes, or a URL at which a model server can
// fetch it. Exactly one of the two is set.
type ImageContent struct {
	Data []byte
	URL  string
	// MIME is the media type, such as image/png. Set with Data.
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
// resource. A textual resource has Text, a binary one has Blob (not nil, even
// when it has no bytes).
type ResourceContent struct {
	URI  string
	MIME string // media type; may be empty
	Text string
	Blob []byte // nil for a textual resource
	Extra
}

// LinkContent points at a resource without holding it.
type LinkContent struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIME        string // media type; may be empty
	Size        *int64 // bytes; nil when not known
	Extra
}

// StructuredContent is a JSON value that programs can read.
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

// ExtraOf returns the metadata of a content and the members that this package does
// not know.
func ExtraOf(c Content) Extra {
	switch c := c.(type) {
	case TextContent:
		return c.Extra
	case ImageContent:
		return c.Extra
	case AudioContent:
		return c.Extra
	case ResourceContent:
		return c.Extra
	case LinkContent:
		return c.Extra
	case StructuredContent:
		return c.Extra
	}
	return Extra{}
}

// WithExtra returns a copy of a content with other metadata and unknown members.
func WithExtra(c Content, extra Extra) Content {
	switch c := c.(type) {
	case TextContent:
		c.Extra = extra
		return c
	case ImageContent:
		c.Extra = extra
		return c
	case AudioContent:
		c.Extra = extra
		return c
	case ResourceContent:
		c.Extra = extra
		return c
	case LinkContent:
		c.Extra = extra
		return c
	case StructuredContent:
		c.Extra = extra
		return c
	}
	return c
}

// Text returns s as a piece of content.
func Text(s string) TextContent { return TextContent{Text: s} }

// Texts returns each string as a piece of content, ready for a canister.
func Texts(ss ...string) []Content {
	contents := make([]Content, len(ss))
	for i, s := range ss {
		contents[i] = Text(s)
	}
	return contents
}

// TextOf returns the text of all [TextContent] in contents, one after another
// with a newline between two. Other kinds are passed over.
func TextOf(contents []Content) string {
	var texts []string
	for _, c := range contents {
		if t, ok := c.(TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}
