// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"strings"
	"unicode/utf8"
)

// restRows are the rows of a terminal that a page leaves for the question below it.
const restRows = 8

// Pages divides a text into parts of whole lines. Each fits a terminal with a question
// below it. Lines that are longer than a row are broken, unless they have colours,
// which are short. A size of 0 is unknown. There is at least one page.
func Pages(text string, columns, rows int) []string {
	if columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for !strings.ContainsRune(line, '\x1b') && len(line) > 0 {
			n := fitting(line, max(2, columns-1))
			if n == len(line) {
				break
			}
			lines = append(lines, line[:n])
			line = line[n:]
		}
		lines = append(lines, line)
	}
	most := max(1, rows-restRows)
	var pages []string
	for len(lines) > most {
		pages = append(pages, strings.Join(lines[:most], "\n"))
		lines = lines[most:]
	}
	return append(pages, strings.Join(lines, "\n"))
}

// fitting returns how many bytes of a line fit a number of columns. Characters that may be
// wide count as wide.
func fitting(line string, columns int) int {
	const firstWide = 0x1100 // Hangul Jamo
	for i, r := range line {
		switch {
		case r == '\t':
			columns -= 8
		case r >= firstWide:
			columns -= 2
		default:
			columns--
		}
		if columns < 0 {
			_, first := utf8.DecodeRuneInString(line)
			return max(i, first)
		}
	}
	return len(line)
}
