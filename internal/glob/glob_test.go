// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "any/thing at all", true},
		{"query_*", "query_users", true},
		{"query_*", "query_", true},
		{"query_*", "a_query_x", false},
		{"*_users", "query_users", true},
		{"*_users", "query_users_x", false},
		{"a*b*c", "a/x/b/y/c", true},
		{"a*b*c", "acb", false},
		{"a?c", "a/c", true},
		{"a?c", "ac", false},
		{"?", "東", true},
		{"??", "東", false},
		{"*?", "東京", true},
		{"?", "\xff", true},
		{"a**b", "ab", true},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{`\*`, `\x`, true},
		{"Read", "read", false},
	}
	for _, test := range tests {
		if got := Match(test.pattern, test.name); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.name, got)
		}
	}
}

// A pattern that makes others backtrack for ever comes to an end.
func TestMatchDoesNotBacktrack(t *testing.T) {
	if Match(strings.Repeat("a*", 2000)+"b", strings.Repeat("a", 10_000)) {
		t.Error("it matches")
	}
}

// FuzzMatch compares with path.Match, where the two mean the same.
func FuzzMatch(f *testing.F) {
	f.Add("query_*", "query_users")
	f.Add("*a*?b", "xaab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := Match(pattern, name)
		if strings.ContainsAny(pattern, `[]\/`) || strings.Contains(name, "/") {
			return
		}
		if strings.ContainsFunc(pattern+name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return // package path lets * end inside a character
		}
		if want, err := path.Match(pattern, name); err == nil && got != want {
			t.Errorf("Match(%q, %q) = %v", pattern, name, got)
		}
	})
}
