// SPDX-License-Identifier: Apache-2.0

package textcut

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "…"},
		{"abcde", 4, "a…"},
		{"abcd", 2, "ab"},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
		{"", -1, ""},
		{"天天天", 9, "天天天"},
		{"天天天", 8, "天…"},
		{"天天天", 5, "…"},
		{"a天", 3, "…"},
		{"\x80\x80\x80\x80\x80\x80\x80", 6, "\x80\x80\x80…"},
	} {
		if got := Bytes(c.text, c.n); got != c.want {
			t.Errorf("Bytes(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func FuzzPrefix(f *testing.F) {
	f.Add("x天天天", 5)
	f.Add("\xe5\x80", 1)
	f.Add("", -1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		got := Prefix(text, n)
		if !strings.HasPrefix(text, got) || len(got) > max(n, 0) {
			t.Fatalf("Prefix(%q, %d) = %q", text, n, got)
		}
		if utf8.ValidString(text) {
			if !utf8.ValidString(got) {
				t.Fatalf("Prefix(%q, %d) = %q ends within a character", text, n, got)
			}
			if _, size := utf8.DecodeRuneInString(text[len(got):]); size > 0 && len(got)+size <= n {
				t.Fatalf("Prefix(%q, %d) = %q, and the next character has room", text, n, got)
			}
		}
		if marked := Bytes(text, n); len(marked) > max(n, 0) {
			t.Fatalf("Bytes(%q, %d) = %q", text, n, marked)
		}
	})
}
