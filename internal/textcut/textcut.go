// SPDX-License-Identifier: Apache-2.0

// Package textcut shortens texts between two characters.
package textcut

import "unicode/utf8"

// Mark stands behind a text that [Bytes] has shortened.
const Mark = "…"

// Bytes returns text if it has at most n bytes, and otherwise a prefix of it and
// [Mark], which together have at most n bytes. Without room for the mark it returns
// the prefix alone.
func Bytes(text string, n int) string {
	switch {
	case len(text) <= n:
		return text
	case n < len(Mark):
		return Prefix(text, n)
	}
	return Prefix(text, n-len(Mark)) + Mark
}

// Prefix returns the longest prefix of text that has at most n bytes and does not
// end within a character. It is for callers that say by themselves how much they
// have left out. In a text that is not UTF-8 each wrong byte is a character.
func Prefix(text string, n int) string {
	n = max(n, 0)
	if len(text) <= n {
		return text
	}
	for end := n; end >= 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:n]
}
