// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// maxScrollback bounds the lines above the screen that an emulator keeps.
const maxScrollback = 20_000

// Emulator is the screen of a terminal like xterm: it processes the output of a program.
// Like tmux, it keeps lines that are erased from the first cell on.
// It ignores colours. Its methods must not be called concurrently.
type Emulator struct {
	parser  parser
	answer  func(string) // receives the replies to the program's questions
	cols    int
	rows    int
	lines   []line // of the current screen
	main    []line // of the main screen, while the alternate one is shown
	above   []line // scrolled off the top of the main screen
	dropped int    // how many more lines scrolled off earlier

	row, col    int
	wrap        bool // the next character goes to the next line
	top, bottom int  // the scroll region; bottom is its last line
	saved       cursor
	savedMain   cursor
	last        string // the last printed character, for REP
	modes       map[int]bool
	tabs        map[int]bool // only tab stops that were set; the others are each 8 columns
	clipboard   string
	title       string
}

type cursor struct{ row, col int }

// line is a row of the screen. Each cell is a character with its combining characters;
// the second cell of a wide character is empty.
type line []string

const blank = " "

// NewEmulator returns an empty screen. Answer receives the replies of the terminal.
func NewEmulator(cols, rows int, answer func(string)) *Emulator {
	e := &Emulator{answer: answer}
	e.cols, e.rows = cols, rows
	e.reset()
	return e
}

func (e *Emulator) reset() {
	e.lines, e.main = blankLines(e.cols, e.rows), nil
	e.row, e.col, e.wrap = 0, 0, false
	e.top, e.bottom = 0, e.rows-1
	e.modes = map[int]bool{modeAutoWrap: true, modeCursor: true}
	e.tabs = nil
}

func blankLine(cols int) line { return slices.Repeat(line{blank}, cols) }

func blankLines(cols, n int) []line {
	lines := make([]line, n)
	for i := range lines {
		lines[i] = blankLine(cols)
	}
	return lines
}

// Resize changes the size. It wraps no line again, as xterm does not.
func (e *Emulator) Resize(cols, rows int) {
	e.cols = cols
	lost := max(0, e.row-rows+1) // the cursor stays on the screen
	if e.main == nil {
		e.keep(e.lines[:lost])
	}
	e.row -= lost
	e.lines = e.fit(e.lines[lost:], rows)
	if e.main != nil {
		e.main = e.fit(e.main, rows)
	}
	e.rows, e.top, e.bottom = rows, 0, rows-1
	e.col, e.wrap = min(e.col, cols-1), false
}

// fit returns lines of the new width, cut or filled up to a number of rows.
func (e *Emulator) fit(lines []line, rows int) []line {
	lines = slices.Clone(lines[:min(len(lines), rows)])
	for i, l := range lines {
		if len(l) > e.cols {
			l = slices.Clone(l[:e.cols])
			if columnsOf(l[e.cols-1]) == 2 {
				l[e.cols-1] = blank
			}
		}
		lines[i] = append(l, slices.Repeat(line{blank}, e.cols-len(l))...)
	}
	return append(lines, blankLines(e.cols, rows-len(lines))...)
}

// Screen returns the rows of the screen without the blanks at their ends.
func (e *Emulator) Screen() string { return text(e.lines) }

// All returns the lines that scrolled off the screen, and the screen.
func (e *Emulator) All() string { return text(e.above) + text(e.lines) }

// Scrolled returns how many lines scrolled off the top of the screen.
func (e *Emulator) Scrolled() int { return e.dropped + len(e.above) }

// Cursor returns the position of the cursor from 0, and whether it is visible.
func (e *Emulator) Cursor() (row, col int, visible bool) {
	return e.row, e.col, e.modes[modeCursor]
}

// Line returns one row of the screen, from 0, without the blanks at its end.
func (e *Emulator) Line(row int) string { return e.lines[row].text() }

// Size returns the columns and the rows.
func (e *Emulator) Size() (cols, rows int) { return e.cols, e.rows }

// Mode reports whether the program set a private mode, such as 2004 for bracketed paste.
func (e *Emulator) Mode(number int) bool { return e.modes[number] }

// Clipboard returns the text that the program copied last.
func (e *Emulator) Clipboard() string { return e.clipboard }

// Title returns the title that the program gave the window.
func (e *Emulator) Title() string { return e.title }

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text())
		b.WriteByte('\n')
	}
	return b.String()
}

func (l line) text() string { return strings.TrimRight(strings.Join(l, ""), " ") }

// columnsOf returns how many columns a character takes. Characters that other ones
// combine with take those of the first.
func columnsOf(char string) int {
	r, _ := utf8.DecodeRuneInString(char)
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// print writes a character at the cursor.
func (e *Emulator) print(char string) {
	n := columnsOf(char)
	if n == 0 {
		e.combine(char)
		return
	}
	e.last = char
	if e.wrap || e.col+n > e.cols {
		if e.modes[modeAutoWrap] {
			e.col, e.wrap = 0, false
			e.index()
		} else {
			e.col = e.cols - n
		}
	}
	l := e.lines[e.row]
	if e.modes[modeInsert] {
		l = slices.Insert(l, e.col, slices.Repeat(line{blank}, n)...)[:e.cols]
		e.lines[e.row] = l
	}
	e.unpair(e.row, e.col, e.col+n)
	l[e.col] = char
	if n == 2 {
		l[e.col+1] = ""
	}
	if e.col += n; e.col == e.cols {
		e.col, e.wrap = e.cols-1, e.modes[modeAutoWrap]
	}
}

// combine adds a character without columns to the one before the cursor.
func (e *Emulator) combine(char string) {
	at := e.col - 1
	if e.wrap {
		at = e.col
	}
	l := e.lines[e.row]
	if at >= 0 && l[at] == "" {
		at--
	}
	if at >= 0 && len(l[at]) < 64 {
		l[at] += char
	}
}

// unpair blanks the other halves of wide characters whose first or second half lies
// between two columns.
func (e *Emulator) unpair(row, from, to int) {
	l := e.lines[row]
	if from > 0 && from < e.cols && l[from] == "" {
		l[from-1] = blank
	}
	if to > 0 && to < e.cols && l[to] == "" {
		l[to] = blank
	}
}

// index moves the cursor down, and scrolls at the bottom of the region.
func (e *Emulator) index() {
	switch {
	case e.row == e.bottom:
		e.scrollUp(e.top, 1)
	case e.row < e.rows-1:
		e.row++
	}
}

// reverseIndex moves the cursor up, and scrolls at the top of the region.
func (e *Emulator) reverseIndex() {
	switch {
	case e.row == e.top:
		e.scrollDown(e.top, 1)
	case e.row > 0:
		e.row--
	}
}

// scrollUp removes n lines at row from, up to the bottom of the region.
func (e *Emulator) scrollUp(from, n int) {
	n = min(n, e.bottom-from+1)
	if from == 0 && e.main == nil {
		e.keep(e.lines[:n])
	}
	copy(e.lines[from:e.bottom+1], e.lines[from+n:e.bottom+1])
	copy(e.lines[e.bottom+1-n:], blankLines(e.cols, n))
}

// scrollDown inserts n lines at row from, up to the bottom of the region.
func (e *Emulator) scrollDown(from, n int) {
	n = min(n, e.bottom-from+1)
	copy(e.lines[from+n:e.bottom+1], e.lines[from:e.bottom+1-n])
	copy(e.lines[from:], blankLines(e.cols, n))
}

// keep adds lines to those above the screen.
func (e *Emulator) keep(lines []line) {
	for _, l := range lines {
		e.above = append(e.above, slices.Clone(l))
	}
	if over := len(e.above) - maxScrollback; over > maxScrollback/10 {
		e.above = slices.Clone(e.above[over:])
		e.dropped += over
	}
}

// clear blanks the cells between two columns of a row.
func (e *Emulator) clear(row, from, to int) {
	from, to = max(0, from), min(to, e.cols)
	if from >= to {
		return
	}
	e.unpair(row, from, to)
	for i := from; i < to; i++ {
		e.lines[row][i] = blank
	}
}
