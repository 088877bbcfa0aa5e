// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
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

// ExtraOf returns the metadata and the unknown members of a content.
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

// WithExtra returns a copy of c with its metadata and unknown members replaced.
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
