// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// marked returns the lines of a comparison in colours, with a prefix before each.
func (s Style) marked(prefix string, lines []string) [][]span {
	var rows [][]span
	for _, line := range lines {
		for n, part := range chop([]span{{text: showReturns(line[2:]), ink: s.markInk(line)}}, s.width()-len(prefix)-4) {
			mark := line[:2]
			if n > 0 {
				mark = "  "
			}
			head := []span{{text: prefix}, {text: s.symbols().bar + " ", ink: faintInk}, {text: mark, ink: s.markInk(line)}}
			rows = append(rows, append(head, part...))
		}
	}
	return rows
}

func (s Style) markInk(line string) ink {
	switch line[0] {
	case '-':
		return s.badInk()
	case '+':
		return s.goodInk()
	}
	return ink{}
}

// showReturns returns a line with its invisible characters made visible, carriage returns
// at its end included.
func showReturns(line string) string {
	bare := strings.TrimRight(line, "\r")
	return display.Text(bare) + strings.Repeat("<U+000D>", len(line)-len(bare))
}

// IsPatch reports whether a text is a unified diff, as diff -u and git write it.
func IsPatch(text string) bool {
	old, added, hunk := false, false, false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--- "):
			old = true
		case strings.HasPrefix(line, "+++ ") && old:
			added = true
		case strings.HasPrefix(line, "@@ ") && added:
			hunk = true
		}
	}
	return hunk
}

// Patch returns the lines of a unified diff in colours.
func Patch(style Style, text string) []string {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		with := ink{}
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "diff "):
			with = boldInk
		case strings.HasPrefix(line, "@@"):
			with = style.nameInk()
		case line != "":
			with = style.markInk(line)
		}
		rows = append(rows, style.rows(chop([]span{{text: showReturns(line), ink: with}}, style.width()))...)
	}
	return rows
}
