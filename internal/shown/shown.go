// SPDX-License-Identifier: Apache-2.0

// Package shown makes what models, servers and tools say fit for people's eyes:
// with a code in place of each character that cannot be seen or does something to a
// terminal, and with a line in place of what is no text.
package shown

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
)

// Text returns text as it may go to a terminal or another reader: with a code such
// as <U+202E> in place of each character that [IsInvisible], which could move the
// cursor, rename the window, change the direction, or hide what a person approves.
// Joiners stay in emoji and in the scripts that need them.
func Text(text string) string { return Continue(0, text) }

// Continue is [Text] for text that comes behind another one, which ends with the
// character before.
func Continue(before rune, text string) string { return visible(before, text, code) }

// Line returns [Text] with one space for each run of white space.
func Line(text string) string { return strings.Join(strings.Fields(Text(text)), " ") }

// JSON returns a JSON text, indented and as [EscapeJSON] has it; of another text, its
// [Text].
func JSON(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return Text(string(text))
	}
	return EscapeJSON(b.String())
}

// Contents returns contents as text for people: text as it is, structured
// content as its JSON unless text stands beside it, and the rest described. It
// is not yet [Text].
func Contents(contents []canister.Content) string {
	var parts []string
	hasText := canister.TextOf(contents) != ""
	for _, c := range contents {
		if _, structured := c.(canister.StructuredContent); structured && hasText {
			continue
		}
		parts = append(parts, Content(c))
	}
	return strings.Join(parts, "\n")
}

// Content is [Contents] of one.
func Content(content canister.Content) string {
	switch c := content.(type) {
	case canister.TextContent:
		return c.Text
	case canister.StructuredContent:
		return string(c.JSON)
	case canister.ImageContent:
		if c.URL != "" {
			return fmt.Sprintf("[image at %s]", c.URL)
		}
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIME, len(c.Data))
	case canister.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIME, len(c.Data))
	case canister.ResourceContent:
		if c.Blob != nil {
			return fmt.Sprintf("[resource %s, %s, %d bytes]", c.URI, cmp.Or(c.MIME, "of unknown type"), len(c.Blob))
		}
		return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text)
	case canister.LinkContent:
		return fmt.Sprintf("[link to %s: %s]", cmp.Or(c.Title, c.Name, "a resource"), c.URI)
	}
	return fmt.Sprintf("[%T]", content)
}
