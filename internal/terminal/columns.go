// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns returns how many columns of a terminal text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Fit returns text cut to limit columns.
func Fit(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n >= limit {
			return text[:i] + "…"
		}
	}
	return text
}

// pad returns text padded with spaces to a number of columns.
func pad(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-columns(text)))
}
