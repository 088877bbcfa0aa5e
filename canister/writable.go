// SPDX-License-Identifier: Apache-2.0

package canister

// Writable returns the error that [Marshal] would return for c, or nil. It is
// cheaper: it skips texts and data, which always have a JSON form.
func Writable(c Canister) error {
	if contents := ContentOf(c); len(contents) > 0 {
		light := make([]Content, len(contents))
		for i, content := range contents {
			light[i] = withoutData(content)
		}
		c = WithContent(c, light)
	}
	_, err := Marshal(c)
	return err
}

// withoutData returns a content without the parts that can always be written.
func withoutData(content Content) Content {
	switch c := content.(type) {
	case TextContent:
		return TextContent{Extra: c.Extra}
	case ImageContent:
		return ImageContent{Extra: c.Extra}
	case AudioContent:
		return AudioContent{Extra: c.Extra}
	case ResourceContent:
		return ResourceContent{Extra: c.Extra}
	case LinkContent:
		return LinkContent{Extra: c.Extra}
	default:
		return content
	}
}
