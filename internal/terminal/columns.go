// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width returns how many columns of a terminal text takes.
func Width(text string) int {
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
	if Width(text) <= limit {
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
	return text + strings.Repeat(" ", max(0, to-Width(text)))
}

// Wrap breaks text at spaces into lines of at most limit columns. Words that are longer are
// broken anywhere. There is at least one line.
func Wrap(text string, limit int) []string {
	var lines []string
	line, taken := "", 0
	for word := range strings.FieldsSeq(text) {
		for Width(word) > 0 {
			room := limit - taken
			if taken > 0 {
				room--
			}
			switch wide := Width(word); {
			case wide <= room && taken > 0:
				line, taken, word = line+" "+word, taken+1+wide, ""
			case wide <= limit && taken == 0:
				line, taken, word = word, wide, ""
			case taken > 0:
				lines, line, taken = append(lines, line), "", 0
			default: // a long word, at the start of a line
				head := prefix(word, limit)
				lines, word = append(lines, head), word[len(head):]
			}
		}
	}
	if line != "" || lines == nil {
		lines = append(lines, line)
	}
	return lines
}

// prefix returns the longest beginning of text that takes at most limit columns, and at least
// one character.
func prefix(text string, limit int) string {
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n > limit && i > 0 {
			return text[:i]
		}
	}
	return text
}
