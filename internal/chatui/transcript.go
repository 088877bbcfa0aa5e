// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"io"
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/internal/terminal"
)

// transcript is the finished part of the conversation that the terminal's scrollback does
// not have yet: its last rows stay in the region that is redrawn, so that the input does
// not move up and down with each finished paragraph.
type transcript struct {
	rows     []string // each fits the width
	printing int      // how many of the first rows are on their way to the scrollback
	partial  string   // the beginning of a line that others write
	pictures []picture
}

// picture is an image that is drawn below a row when the row is printed, because the
// region that is redrawn holds text only.
type picture struct {
	row      int
	sequence string // draws it at the cursor
	height   int    // in rows
}

// printed reports that rows are in the scrollback.
type printed int

// add adds text, which may contain colours and several lines. Lines are wrapped at width,
// and further rows of a line are indented like its last column.
func (t *transcript) add(text string, width int) {
	for line := range strings.SplitSeq(terminal.Visible(text), "\n") {
		t.rows = append(t.rows, wrapColumns(line, width)...)
	}
}

// write adds text whose last line may be unfinished.
func (t *transcript) write(text string, width int) {
	t.partial += text
	if end := strings.LastIndexByte(t.partial, '\n'); end >= 0 {
		whole := t.partial[:end]
		t.partial = t.partial[end+1:]
		t.add(whole, width)
	}
}

// endLine ends the unfinished line.
func (t *transcript) endLine(width int) {
	if t.partial != "" {
		t.write("\n", width)
	}
}

// space adds an empty row, unless the last one is empty.
func (t *transcript) space() {
	if n := len(t.rows); n == 0 || t.rows[n-1] != "" {
		t.rows = append(t.rows, "")
	}
}

// illustrate adds an image, which is drawn below the last row.
func (t *transcript) illustrate(sequence string, height int) {
	t.pictures = append(t.pictures, picture{len(t.rows) - 1, sequence, height})
}

// waiting returns how many rows are to be moved to the scrollback if the last keep may
// stay. Rows with images, and all rows before them, do not stay.
func (t *transcript) waiting(keep int) int {
	n := max(0, len(t.rows)-keep)
	if last := len(t.pictures) - 1; last >= 0 {
		n = max(n, t.pictures[last].row+1)
	}
	return n
}

// print moves rows beyond the last keep to the scrollback, at most some of them at once.
// The rows are shown until [transcript.gone], so that none is missing in between.
func (t *transcript) print(keep, most int) tea.Cmd {
	text, n := t.next(keep, most)
	if t.printing > 0 || n == 0 {
		return nil
	}
	t.printing = n
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printed(n) })
}

// next returns the text of the rows to print, and how many of the rows it has. An image is
// printed by itself.
func (t *transcript) next(keep, most int) (text string, n int) {
	n = min(t.waiting(keep), max(1, most))
	switch {
	case n == 0:
		return "", 0
	case len(t.pictures) == 0:
		return printable(t.rows[:n]), n
	case !t.beginsWithPicture():
		n = min(n, t.pictures[0].row)
		return printable(t.rows[:n]), n
	}
	return printable(t.rows[:1]) + t.pictures[0].below(most), 1
}

// beginsWithPicture reports whether the next row has an image.
func (t *transcript) beginsWithPicture() bool { return len(t.pictures) > 0 && t.pictures[0].row == 0 }

// below returns the text that draws the image under a row: empty rows, and one that goes
// back over them. It is empty if they do not fit the most rows that can be printed at once:
// then their beginning would be off the screen.
func (p picture) below(most int) string {
	if p.height+2 > most {
		return ""
	}
	return strings.Repeat("\n", p.height+1) + ansi.SaveCursor + ansi.CursorUp(p.height) + p.sequence + ansi.RestoreCursor
}

// printable returns rows as a text to print. It is never empty, because bubbletea prints no
// row for an empty text.
func printable(rows []string) string { return strings.Join(rows, "\n") + "\x1b[m" }

// gone removes rows that are in the scrollback.
func (t *transcript) gone(n printed) {
	t.printing = 0
	t.rows = t.rows[min(int(n), len(t.rows)):]
	if len(t.rows) == 0 {
		t.rows = nil
	}
	for len(t.pictures) > 0 && t.pictures[0].row < int(n) {
		t.pictures = t.pictures[1:]
	}
	for i := range t.pictures {
		t.pictures[i].row -= int(n)
	}
}

// wrapAll wraps the lines of a text, which others have written.
func wrapAll(text string, width int) []string {
	var rows []string
	for line := range strings.SplitSeq(terminal.Visible(text), "\n") {
		rows = append(rows, wrap(line, width)...)
	}
	return rows
}

// hyphen stands for a hyphen while a line is wrapped, because flags, IDs and dates must
// stay whole, so that they can be copied.
const hyphen = "\uf8ff"

// wrap wraps a line at width, between words. Each row ends its colours, and the next one
// takes them up.
func wrap(line string, width int) []string {
	line = strings.ReplaceAll(line, "\t", "    ")
	if ansi.StringWidthWc(line) <= width {
		return []string{line}
	}
	var text strings.Builder
	rows := lipgloss.NewWrapWriter(&text)
	from, to := "-", hyphen
	if strings.Contains(line, hyphen) {
		to = from
	}
	io.WriteString(rows, ansi.WrapWc(strings.ReplaceAll(line, from, to), width, ""))
	rows.Close()
	return strings.Split(strings.ReplaceAll(text.String(), to, from), "\n")
}

// hang wraps a line at width, after an indentation, such as a mark for an item of a list. Rows
// after the first are indented as far. An indentation that is wider than half of width is cut.
func hang(indent, line string, width int) []string {
	indent = ansi.TruncateWc(indent, width/2, "")
	rows := wrap(line, max(1, width-columns(indent)))
	for i, row := range rows {
		if i > 0 {
			indent = strings.Repeat(" ", columns(indent))
		}
		rows[i] = indent + row
	}
	return rows
}

// gap separates the columns of a line.
var gap = regexp.MustCompile(`\S  +`)

// wrapColumns wraps the last column of a line that begins in the left half of the width. If
// the first column is wider, the others are wrapped below it. Of an indentation, at most half of
// width is repeated in further rows; the rest is text.
func wrapColumns(line string, width int) []string {
	line = strings.ReplaceAll(line, "\t", "    ")
	if columns(line) <= width {
		return []string{line}
	}
	plain := ansi.Strip(line)
	indent := min(len(plain)-len(strings.TrimLeft(plain, " ")), width/2)
	at := indent
	for _, found := range gap.FindAllStringIndex(plain, -1) {
		start := columns(plain[:found[1]])
		if start <= width/2 {
			at = start
			continue
		}
		if at > indent {
			break
		}
		first := ansi.TruncateLeftWc(ansi.TruncateWc(line, columns(plain[:found[0]+1]), ""), indent, "")
		rows := hang(strings.Repeat(" ", indent), first, width)
		return append(rows, hang(strings.Repeat(" ", indent+4), ansi.TruncateLeftWc(line, start, ""), width)...)
	}
	return hang(ansi.TruncateWc(line, at, ""), ansi.TruncateLeftWc(line, at, ""), width)
}

// fit cuts a line at width.
func fit(line string, width int) string { return ansi.TruncateWc(line, width, "…") }
