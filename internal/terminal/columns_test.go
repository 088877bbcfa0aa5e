// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/display"
)

func TestFit(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"Oslo", 4, "Oslo"},
		{"Lisbon", 4, "Lis…"},
		{"東京都", 6, "東京都"},
		{"東京都", 5, "東京…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"\u2764\ufe0f\u2764\ufe0f\u2764\ufe0f", 5, "\u2764\ufe0f\u2764\ufe0f…"},
	} {
		if got := Fit(test.text, test.limit); got != test.want {
			t.Errorf("fit(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("Oslo \x1b[1m東京", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 1 + (limit&0xff+0x100)&0xff
		short := Fit(display.Line(text), limit)
		if Width(short) > limit {
			t.Errorf("%q has %d columns, more than %d", short, Width(short), limit)
		}
		if utf8.ValidString(text) && strings.ContainsAny(short, "\x1b\n\r\t") {
			t.Errorf("%q is not one printable line", short)
		}
	})
}

func TestTable(t *testing.T) {
	got := Table([][]string{{"a", "b"}, {"東京", "c"}}, nil)
	if want := "a     b\n東京  c\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  []string
	}{
		{"", 5, []string{""}},
		{"  one two  three ", 7, []string{"one two", "three"}},
		{"one two", 6, []string{"one", "two"}},
		{"abcdefgh ij", 3, []string{"abc", "def", "gh", "ij"}},
		{"a abcdef", 4, []string{"a", "abcd", "ef"}},
		{"日本語 x", 4, []string{"日本", "語 x"}},
		{"日本", 1, []string{"日", "本"}},
	} {
		if got := Wrap(test.text, test.limit); !slices.Equal(got, test.want) {
			t.Errorf("%q at %d: %q", test.text, test.limit, got)
		}
	}
}
