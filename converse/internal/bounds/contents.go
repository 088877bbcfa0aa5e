// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
)

// Keep stores a piece that is cut off, and returns a link to it. Nil stores nothing.
type Keep func(whole canister.Content) (canister.LinkContent, bool)

// piece stores a piece.
func (k Keep) piece(whole canister.Content) (canister.LinkContent, bool) {
	if k == nil {
		return canister.LinkContent{}, false
	}
	return k(whole)
}

// Contents cuts contents to at most limit bytes of text and data. A text is cut at the
// limit and any other piece that does not fit is left out; a line in its place says so.
// Later pieces that fit are kept, and the whole of a piece that has such a line is
// passed to keep. A negative limit means no limit.
func Contents(contents []canister.Content, limit int, keep Keep) []canister.Content {
	total := 0
	for _, c := range contents {
		total += Size(c)
	}
	if limit < 0 || total <= limit {
		return contents
	}
	kept := make([]canister.Content, 0, len(contents))
	left, lines, further, bytes := limit, 0, 0, 0
	for _, c := range contents {
		n := Size(c)
		if n <= left {
			kept, left = append(kept, c), left-n
			continue
		}
		if text, ok := c.(canister.TextContent); ok && left > 0 {
			text.Text = textcut.Prefix(text.Text, left)
			kept, left = append(kept, text), 0
			n -= len(text.Text)
		}
		if lines == maxCutLines {
			further, bytes = further+1, bytes+n
			continue
		}
		lines++
		kept = append(kept, canister.Text(cutLine(fmt.Sprintf("%d bytes of %s", n, Describe(c)), limit)))
		if link, ok := keep.piece(c); ok {
			kept = append(kept, link)
		}
	}
	if further > 0 {
		kept = append(kept, canister.Text(cutLine(fmt.Sprintf("%d further pieces with %d bytes", further, bytes), limit)))
	}
	return kept
}

// MaxQuoted is how many bytes of a text from outside an error or a note quotes.
const MaxQuoted = 200

// maxCutLines is how many of the pieces that were left out get a line each.
const maxCutLines = 4

func cutLine(out string, limit int) string {
	return fmt.Sprintf("[cut: %s omitted, because a result may have at most %d bytes]", out, limit)
}

// ByValue replaces everything that is not a content, held by value, by a line, and structured content that is not JSON by its text: a history with either
// could not be encoded.
func ByValue(contents []canister.Content) []canister.Content {
	copied := false
	for i, c := range contents {
		var text string
		switch p := canister.PayloadOf(c); {
		case p.Type == "":
			text = fmt.Sprintf("[omitted: %T is not a content]", c)
		case p.Type == "structured" && (len(p.JSON) == 0 || !hasForm(canister.StructuredContent{JSON: p.JSON})):
			text = string(p.JSON)
		default:
			continue
		}
		if !copied {
			contents, copied = slices.Clone(contents), true
		}
		contents[i] = canister.Text(text)
	}
	return contents
}

// Size returns the bytes of text and data in a content. An empty content has a minimum
// size, so that the number of contents is bounded too.
func Size(c canister.Content) int {
	const least = 16
	return max(least, canister.PayloadOf(c).Size())
}

// Describe describes a content for a person or a model.
func Describe(c canister.Content) string {
	switch c := c.(type) {
	case canister.TextContent:
		return "text"
	case canister.ImageContent:
		return "an image (" + textcut.Bytes(c.MIME, MaxQuoted) + ")"
	case canister.AudioContent:
		return "a sound (" + textcut.Bytes(c.MIME, MaxQuoted) + ")"
	case canister.ResourceContent:
		return "the resource " + textcut.Bytes(c.URI, MaxQuoted)
	case canister.LinkContent:
		return "a link to " + textcut.Bytes(c.URI, MaxQuoted)
	case canister.StructuredContent:
		return "structured content"
	}
	return fmt.Sprintf("%T", c)
}
