// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// The modes that change what the emulator does: DEC private modes, and insert mode, which
// is an ECMA-48 mode, as a negative number.
const (
	modeInsert   = -4
	modeAutoWrap = 7
	modeCursor   = 25
	modeAlt      = 47
	modeAltClear = 1047
	modeAltSave  = 1049
	modePaste    = 2004
	modeSync     = 2026
)

// knownModes are the private modes that the emulator reports as known (DECRQM). Mode
// 2027, widths of grapheme clusters, is not among them: xterm does not have it.
var knownModes = []int{1, modeAutoWrap, modeCursor, modeAlt, 1000, 1002, 1003, 1004, 1006, modeAltClear, modeAltSave, modePaste, modeSync}

// c0 executes a control character.
func (e *Emulator) c0(b byte) {
	switch b {
	case '\b':
		e.moveTo(e.row, e.col-1)
	case '\t':
		e.moveTo(e.row, e.tabAfter(e.col))
	case '\n', '\v', '\f':
		e.index()
	case '\r':
		e.moveTo(e.row, 0)
	}
}

func (e *Emulator) tabAfter(col int) int {
	for col++; col < e.cols-1 && col%8 != 0 && !e.tabs[col]; col++ {
	}
	return min(col, e.cols-1)
}

func (e *Emulator) tabBefore(col int) int {
	for col--; col > 0 && col%8 != 0 && !e.tabs[col]; col-- {
	}
	return max(col, 0)
}

// moveTo moves the cursor to a position on the screen.
func (e *Emulator) moveTo(row, col int) {
	e.row, e.col = min(max(row, 0), e.rows-1), min(max(col, 0), e.cols-1)
	e.wrap = false
}

// escape executes a sequence of ESC and one byte.
func (e *Emulator) escape(b byte) {
	switch b {
	case '7':
		e.saved = cursor{e.row, e.col}
	case '8':
		e.moveTo(e.saved.row, e.saved.col)
	case 'D':
		e.index()
	case 'E':
		e.moveTo(e.row, 0)
		e.index()
	case 'H':
		if e.tabs == nil {
			e.tabs = map[int]bool{}
		}
		e.tabs[e.col] = true
	case 'M':
		e.reverseIndex()
	case 'c':
		e.reset()
	}
}

// control executes a control sequence.
func (e *Emulator) control(c csi) {
	switch {
	case c.prefix == 0 && c.between == "":
		if !e.move(c) && !e.edit(c) {
			e.report(c)
		}
	case c.prefix == '?' && (c.final == 'h' || c.final == 'l'):
		for _, mode := range c.numbers() {
			e.setMode(mode, c.final == 'h')
		}
	default:
		e.report(c)
	}
}

// move executes a movement of the cursor.
func (e *Emulator) move(c csi) bool {
	n := c.param(0, 1)
	switch c.final {
	case 'A':
		e.moveTo(max(e.row-n, edge(e.row >= e.top, e.top, 0)), e.col)
	case 'B', 'e':
		e.moveTo(min(e.row+n, edge(e.row <= e.bottom, e.bottom, e.rows-1)), e.col)
	case 'C', 'a':
		e.moveTo(e.row, e.col+n)
	case 'D':
		e.moveTo(e.row, e.col-n)
	case 'E':
		e.moveTo(e.row+n, 0)
	case 'F':
		e.moveTo(e.row-n, 0)
	case 'G', '`':
		e.moveTo(e.row, n-1)
	case 'H', 'f':
		e.moveTo(n-1, c.param(1, 1)-1)
	case 'd':
		e.moveTo(n-1, e.col)
	case 'I':
		for range n {
			e.moveTo(e.row, e.tabAfter(e.col))
		}
	case 'Z':
		for range n {
			e.moveTo(e.row, e.tabBefore(e.col))
		}
	case 's':
		e.saved = cursor{e.row, e.col}
	case 'u':
		e.moveTo(e.saved.row, e.saved.col)
	default:
		return false
	}
	return true
}

// edge returns the limit of a vertical movement, which the margins are inside the region.
func edge(inside bool, margin, screen int) int {
	if inside {
		return margin
	}
	return screen
}

// edit executes a change of the screen.
func (e *Emulator) edit(c csi) bool {
	n := c.param(0, 1)
	inside := e.row >= e.top && e.row <= e.bottom
	switch c.final {
	case 'J':
		e.eraseDisplay(c.param(0, 0))
	case 'K':
		e.eraseLine(c.param(0, 0))
	case 'L':
		if inside {
			e.scrollDown(e.row, n)
		}
	case 'M':
		if inside {
			e.deleteLines(n)
		}
	case '@':
		e.unpair(e.row, e.col, e.col)
		e.lines[e.row] = slices.Insert(e.lines[e.row], e.col, slices.Repeat(line{blank}, min(n, e.cols))...)[:e.cols]
	case 'P':
		n = min(n, e.cols-e.col)
		e.unpair(e.row, e.col, e.col+n)
		e.lines[e.row] = append(slices.Delete(e.lines[e.row], e.col, e.col+n), slices.Repeat(line{blank}, n)...)
	case 'X':
		e.clear(e.row, e.col, e.col+n)
	case 'S':
		e.scrollUp(e.top, n)
	case 'T':
		e.scrollDown(e.top, n)
	case 'b':
		for range min(n, e.cols*e.rows) {
			e.print(e.last)
		}
	case 'r':
		e.margins(c)
	case 'h', 'l':
		if c.param(0, 0) == 4 {
			e.modes[modeInsert] = c.final == 'h'
		}
	default:
		return false
	}
	return true
}

// deleteLines removes lines at the cursor. They do not go to the lines above the screen.
func (e *Emulator) deleteLines(n int) {
	n = min(n, e.bottom-e.row+1)
	copy(e.lines[e.row:e.bottom+1], e.lines[e.row+n:e.bottom+1])
	copy(e.lines[e.bottom+1-n:], blankLines(e.cols, n))
}

func (e *Emulator) margins(c csi) {
	top, bottom := c.param(0, 1)-1, min(c.param(1, e.rows), e.rows)-1
	if top < bottom {
		e.top, e.bottom = top, bottom
		e.moveTo(0, 0)
	}
}

func (e *Emulator) eraseDisplay(what int) {
	first, last := 0, e.rows
	switch what {
	case 0:
		e.keepErased()
		e.clear(e.row, e.col, e.cols)
		first = e.row + 1
	case 1:
		e.clear(e.row, 0, e.col+1)
		last = e.row
	case 3:
		e.above, e.dropped = nil, 0
		return
	}
	for row := first; row < last; row++ {
		e.clear(row, 0, e.cols)
	}
}

// keepErased moves the lines of the screen above it if the cursor is in the first cell, as
// tmux does before it erases all of a screen (its option scroll-on-clear).
func (e *Emulator) keepErased() {
	if e.row > 0 || e.col > 0 || e.main != nil {
		return
	}
	used := len(e.lines)
	for used > 0 && strings.TrimSpace(strings.Join(e.lines[used-1], "")) == "" {
		used--
	}
	e.keep(e.lines[:used])
}

func (e *Emulator) eraseLine(what int) {
	switch what {
	case 0:
		e.clear(e.row, e.col, e.cols)
	case 1:
		e.clear(e.row, 0, e.col+1)
	default:
		e.clear(e.row, 0, e.cols)
	}
}

func (e *Emulator) setMode(mode int, on bool) {
	if mode == modeAlt || mode == modeAltClear || mode == modeAltSave {
		e.alternate(on, mode == modeAltSave)
	}
	e.modes[mode] = on
}

// alternate shows the alternate screen, or the main one.
func (e *Emulator) alternate(on, save bool) {
	switch {
	case on && e.main == nil:
		e.main, e.savedMain = e.lines, cursor{e.row, e.col}
		e.lines = blankLines(e.cols, e.rows)
	case !on && e.main != nil:
		e.lines, e.main = e.main, nil
		if save {
			e.moveTo(e.savedMain.row, e.savedMain.col)
		}
	}
}

// report answers a question of the program, as xterm does. It ignores other sequences,
// such as those for colours and for the keyboard.
func (e *Emulator) report(c csi) {
	switch kind := string(c.prefix) + c.between + string(c.final); kind {
	case "\x00c": // DA1: a VT220 with colours
		e.answer("\x1b[?62;22c")
	case ">c": // DA2
		e.answer("\x1b[>41;390;0c")
	case ">q": // XTVERSION
		if c.param(0, 0) == 0 {
			e.answer("\x1bP>|emulator(1)\x1b\\")
		}
	case "\x00n":
		switch c.param(0, 0) {
		case 5:
			e.answer("\x1b[0n")
		case 6:
			e.answer(fmt.Sprintf("\x1b[%d;%dR", e.row+1, e.col+1))
		}
	case "?$p": // DECRQM
		state, mode := 0, c.param(0, 0)
		if slices.Contains(knownModes, mode) {
			state = 2
			if e.modes[mode] {
				state = 1
			}
		}
		e.answer(fmt.Sprintf("\x1b[?%d;%d$y", mode, state))
	case "\x00t":
		if c.param(0, 0) == 18 {
			e.answer(fmt.Sprintf("\x1b[8;%d;%dt", e.rows, e.cols))
		}
	}
}

// colours are the answers for the foreground, the background and the cursor (OSC 10, 11
// and 12): light text on a dark background.
var colours = map[string]string{"10": "rgb:ffff/ffff/ffff", "11": "rgb:0000/0000/0000", "12": "rgb:ffff/ffff/ffff"}

// command executes a string.
func (e *Emulator) command(kind byte, text string) {
	number, rest, _ := strings.Cut(text, ";")
	switch {
	case kind == 'P' && strings.HasPrefix(text, "+q"): // XTGETTCAP: none is known
		e.answer("\x1bP0+r\x1b\\")
	case kind != ']':
	case number == "0", number == "2":
		e.title = rest
	case number == "52":
		_, data, _ := strings.Cut(rest, ";")
		if copied, err := base64.StdEncoding.DecodeString(data); err == nil {
			e.clipboard = string(copied)
		}
	case colours[number] != "" && rest == "?":
		e.answer("\x1b]" + number + ";" + colours[number] + "\x1b\\")
	}
}
