// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
)

// bound cuts contents so that they hold at most limit bytes of text and data,
// and says with a line what it left out. A negative limit is none. What fits
// is returned as it is.
func bound(contents []canister.Content, limit int) []canister.Content {
	total := 0
	for _, c := range contents {
		total += size(c)
	}
	if limit < 0 || total <= limit {
		return contents
	}
	var kept []canister.Content
	left := limit
	for i, c := range contents {
		n := size(c)
		if n <= left {
			kept, left = append(kept, c), left-n
			continue
		}
		if text, ok := c.(canister.TextContent); ok && left > 0 {
			text.Text = cutText(text.Text, left)
			kept = append(kept, text)
			n -= len(text.Text)
		}
		rest := contents[i+1:]
		return append(kept, canister.Text(cutLine(c, n, rest, limit)))
	}
	return kept
}

// byValue replaces what is not one of the six contents, held by value, by a
// line: a history with it could not be written out.
func byValue(contents []canister.Content) []canister.Content {
	copied := false
	for i, c := range contents {
		switch c.(type) {
		case canister.TextContent, canister.ImageContent, canister.AudioContent,
			canister.ResourceContent, canister.LinkContent, canister.StructuredContent:
			continue
		}
		if !copied {
			contents, copied = slices.Clone(contents), true
		}
		contents[i] = canister.Text(fmt.Sprintf("[left out: %T is no content]", c))
	}
	return contents
}

// cutLine says what was left out: n bytes of c, and all of rest.
func cutLine(c canister.Content, n int, rest []canister.Content, limit int) string {
	line := fmt.Sprintf("[cut: %d bytes of %s", n, what(c))
	if len(rest) > 0 {
		bytes := 0
		for _, c := range rest {
			bytes += size(c)
		}
		line += fmt.Sprintf(" and %d further pieces with %d bytes", len(rest), bytes)
	}
	return line + fmt.Sprintf(" are left out, because a result may have %d bytes]", limit)
}

// size returns the bytes of text and data that a content holds. An empty one
// still counts for something, so that their number is bounded too.
func size(c canister.Content) int {
	const least = 16
	switch c := c.(type) {
	case canister.TextContent:
		return max(least, len(c.Text))
	case canister.ImageContent:
		return max(least, len(c.Data)+len(c.URL))
	case canister.AudioContent:
		return max(least, len(c.Data))
	case canister.ResourceContent:
		return max(least, len(c.Text)+len(c.Blob)+len(c.URI))
	case canister.LinkContent:
		return max(least, len(c.URI)+len(c.Name)+len(c.Title)+len(c.Description))
	case canister.StructuredContent:
		return max(least, len(c.JSON))
	}
	return least
}

// what names a content for a person or a model.
func what(c canister.Content) string {
	switch c := c.(type) {
	case canister.TextContent:
		return "text"
	case canister.ImageContent:
		return "an image (" + clip(c.MIME) + ")"
	case canister.AudioContent:
		return "a sound (" + clip(c.MIME) + ")"
	case canister.ResourceContent:
		return "the resource " + clip(c.URI)
	case canister.LinkContent:
		return "a link to " + clip(c.URI)
	case canister.StructuredContent:
		return "structured content"
	}
	return fmt.Sprintf("%T", c)
}

// clip shortens what a server wrote to what fits into a line.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return cutText(s, most) + "…"
}

// cutText returns the longest beginning of s with at most n bytes that does
// not end within a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
