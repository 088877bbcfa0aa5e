// SPDX-License-Identifier: Apache-2.0

package values

// Trusted is a fact that tools may know and a model may neither see nor choose, such as
// the identity of the user. Printing it never shows the value.
type Trusted struct {
	// Value is the text. It must not be empty.
	Value Value
	// JSON means that the text is JSON, such as 42 or {"id": 42}; otherwise it is a
	// string.
	JSON bool
	// Secret is for tokens and the like: no setting can make the audit trail record it,
	// and it is redacted from the output of tools.
	Secret bool
}
