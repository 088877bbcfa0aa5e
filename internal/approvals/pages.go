// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Pages divides a text into parts of whole lines. Each fits a terminal with the question
// below it. Lines that are longer than a row are broken,
// unless they have colours. A size of 0 is unknown. There is at least one page, and each
// has at least one line.
func Pages(text, question string, columns, rows int) []string {
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
	const others = 2 // an empty row above the page, and one for the answer
	most := rows - others - height(question, columns)
	var pages []string
	first, used := 0, 0
	for i, line := range lines {
		takes := height(line, columns)
		if i > first && used+takes > most {
			pages = append(pages, strings.Join(lines[first:i], "\n"))
			first, used = i, 0
		}
		used += takes
	}
	return append(pages, strings.Join(lines[first:], "\n"))
}

// colour is a sequence that changes the colour (ECMA-48, SGR), and takes no columns.
var colour = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// height returns how many rows a text takes.
func height(text string, columns int) int {
	rows := 0
	for line := range strings.SplitSeq(colour.ReplaceAllString(text, ""), "\n") {
		for rows++; len(line) > 0; rows++ {
			n := fitting(line, max(2, columns))
			if line = line[n:]; line == "" {
				break
			}
		}
	}
	return rows
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
