// SPDX-License-Identifier: Apache-2.0

// Package glob matches names with the patterns of allow lists, deny lists and
// approval rules.
package glob

import "unicode/utf8"

// Match reports whether pattern matches the whole name. In a pattern, * matches
// any number of characters and ? any one character; every other character,
// including '/', matches itself. It takes at most len(pattern) * len(name) steps.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0 // the last * seen, and the position in name where its match began
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(name[n:])
			p, n = p+1, n+size
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[mark:])
			mark += size
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
