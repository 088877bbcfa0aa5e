// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
)

// plain returns contents as text for people: text as it is, structured content
// as its JSON unless text stands beside it, and the rest described.
func plain(contents []canister.Content) string {
	var parts []string
	hasText := canister.TextOf(contents) != ""
	for _, c := range contents {
		if _, structured := c.(canister.StructuredContent); structured && hasText {
			continue
		}
		parts = append(parts, describe(c))
	}
	return strings.Join(parts, "\n")
}

func describe(content canister.Content) string {
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
