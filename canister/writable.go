// SPDX-License-Identifier: Apache-2.0

package canister

// Writable returns the error that [Marshal] would return for c, or nil. It is
// cheaper: it skips texts and data, which always have a JSON form.
func Writable(c Canister) error {
	if contents := ContentOf(c); len(contents) > 0 {
		light := make([]Content, len(contents))
		for i, content := range contents {
			p := PayloadOf(content)
			light[i] = WithPayload(content, Payload{JSON: p.JSON, Extra: p.Extra})
		}
		c = WithContent(c, light)
	}
	_, err := Marshal(c)
	return err
}
