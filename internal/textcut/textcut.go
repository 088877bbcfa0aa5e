// SPDX-License-Identifier: Apache-2.0

// Package textcut shortens text at the boundary between two characters.
package textcut

import "unicode/utf8"

// Mark ends a text that [Bytes] or [Runes] has shortened.
const Mark = "…"

// Bytes returns text if it has at most n bytes, and otherwise a prefix of it
// followed by [Mark], at most n bytes together. If n is too small for Mark, it
// returns only the prefix.
func Bytes(text string, n int) string {
	switch {
	case len(text) <= n:
		return text
	case n < len(Mark):
		return Prefix(text, n)
	}
	return Prefix(text, n-len(Mark)) + Mark
}

// Runes returns text if it has at most n characters, and otherwise its first n followed by
// [Mark].
func Runes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + Mark
		}
	}
	return text
}

// Prefix returns the longest prefix of text that has at most n bytes and does not
// end within a character. It is for callers that report themselves how much they
// left out. Each invalid UTF-8 byte counts as a character.
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
