// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/consort-go/consort/internal/rendering"
)

// Width returns how many columns of a terminal text takes.
func Width(text string) int { return rendering.Columns(text) }

// Fit returns text cut to limit columns, which are at least one.
func Fit(text string, limit int) string {
	if Width(text) <= limit {
		return text
	}
	return rendering.Prefix(text, limit-1) + "…"
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

// prefix returns the longest beginning of text that takes at most limit columns, but at least its
// first character. text must not be empty.
func prefix(text string, limit int) string {
	for ; ; limit++ {
		if found := rendering.Prefix(text, limit); found != "" {
			return found
		}
	}
}
