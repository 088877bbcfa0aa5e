// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// Row is a line of a question or of a comparison.
type Row struct {
	Text string
	// Mark is '-' if the row shows a removed line or a part of one, '+' if it shows an added one,
	// and 0 otherwise. The text alone does not say so: content can begin with "- ", too.
	Mark byte
}

// Comparison returns the rows of compared lines, which begin with "- ", "+ " or "  " as package
// linediff writes them. Each row begins with a bar.
func Comparison(style Style, lines []string) []Row {
	v := values{style: style}
	v.compared("", lines)
	return v.rows()
}

// rows returns the lines with their marks.
func (v *values) rows() []Row {
	rows := make([]Row, len(v.lines))
	for i, text := range v.style.rows(v.lines) {
		rows[i] = Row{text, v.marks[i]}
	}
	return rows
}

// compared adds the lines of a comparison in colours, with a prefix before each.
func (v *values) compared(prefix string, lines []string) {
	s := v.style
	if v.marks == nil {
		v.marks = map[int]byte{}
	}
	for _, line := range lines {
		for n, part := range chop([]span{{text: showReturns(line[2:]), ink: s.markInk(line)}}, s.width()-len(prefix)-4) {
			mark := line[:2]
			if n > 0 {
				mark = "  "
			}
			head := []span{{text: prefix}, {text: s.symbols().bar + " ", ink: faintInk}, {text: mark, ink: s.markInk(line)}}
			if line[0] != ' ' {
				v.marks[len(v.lines)] = line[0]
			}
			v.lines = append(v.lines, append(head, part...))
		}
	}
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

// isPatch reports whether a text is a unified diff, as diff -u and git write it.
func isPatch(text string) bool {
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

// patchRows returns the lines of a unified diff in colours.
func patchRows(style Style, text string) []string {
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
