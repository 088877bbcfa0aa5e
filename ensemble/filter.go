// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"
	"unicode/utf8"
)

// filter decides by name which tools are offered.
type filter struct{ allow, deny []string }

// refuses returns why the tool is not offered, or the empty text if it is.
func (f filter) refuses(tool string) string {
	for _, pattern := range f.deny {
		if matches(pattern, tool) {
			return fmt.Sprintf("it is denied by %q", pattern)
		}
	}
	if len(f.allow) == 0 {
		return ""
	}
	for _, pattern := range f.allow {
		if matches(pattern, tool) {
			return ""
		}
	}
	return "it is not among those allowed"
}

// matches reports whether the glob matches the whole name: * matches any run
// of characters and ? any one; every other character, and '/' too, is itself.
// It takes at most len(pattern) * len(name) steps.
func matches(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0 // the last * seen, and where in name it began to match
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
