// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
)

// kind says how a piece of content is shown.
type kind int

const (
	asMarkdown kind = iota // rendered
	asText                 // as it is, with its line breaks
	asJSON                 // likewise, JSON
	asLine                 // one line that describes content of another type
	asImage                // a picture, or the line in text
)

// piece is a piece of content, with a text that is safe to print.
type piece struct {
	kind kind
	text string
	data []byte // of an image
}

// pieces returns the content of a message. Structured content is left out if there is text
// with it, because it then says the same.
func (r reader) pieces(m message) []piece {
	var all []piece
	hasText := canister.TextOf(m.contents) != ""
	for _, content := range m.contents {
		switch c := content.(type) {
		case canister.TextContent:
			text := piece{kind: asText, text: r.text(c.Text)}
			if m.isMarkdown {
				text.kind = asMarkdown
			}
			all = append(all, text)
		case canister.StructuredContent:
			if !hasText {
				all = append(all, piece{kind: asJSON, text: r.json(string(c.JSON))})
			}
		case canister.ResourceContent:
			all = append(all, r.resource(c)...)
		case canister.ImageContent:
			all = append(all, piece{asImage, r.line(display.Content(c)), c.Data})
		default:
			all = append(all, piece{kind: asLine, text: r.line(display.Content(c))})
		}
	}
	return all
}

// resource returns the content of a resource.
func (r reader) resource(c canister.ResourceContent) []piece {
	if c.Blob != nil {
		return []piece{{asImage, r.line(display.Content(c)), c.Blob}}
	}
	return []piece{
		{kind: asLine, text: r.line(fmt.Sprintf("[resource %s]", c.URI))},
		{kind: asText, text: r.text(c.Text)},
	}
}
