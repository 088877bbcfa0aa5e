// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// bounds are the numbers of lines and bytes beyond which a text is shown as one mark in
// the input. So is a text with tabs or invisible characters, which the input cannot show.
type bounds struct{ lines, bytes int }

// The bounds for a pasted text, and for one that the person edits again.
var (
	forPaste = bounds{8, 1000}
	forEdit  = bounds{200, 20_000}
)

// input is the text that the person types: one or more lines, with pasted pieces.
type input struct {
	prompt string
	area   textarea.Model
	pastes []pasted
	count  int // pastes so far
}

// pasted is a text that a mark in the input stands for.
type pasted struct{ mark, text string }

func newInput(prompt string) *input {
	area := textarea.New()
	area.SetVirtualCursor(false)
	area.ShowLineNumbers = false
	area.EndOfBufferCharacter = ' '
	area.DynamicHeight = true
	area.MaxWidth = 0
	area.MaxContentHeight = 100_000
	styles := area.Styles()
	styles.Focused, styles.Blurred = textarea.StyleState{}, textarea.StyleState{}
	styles.Cursor.Color, styles.Cursor.Shape, styles.Cursor.Blink = nil, tea.CursorBar, true
	area.SetStyles(styles)
	area.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	area.KeyMap.LineStart.SetKeys("home", "ctrl+a", "find")
	area.KeyMap.LineEnd.SetKeys("end", "ctrl+e", "select")
	area.KeyMap.Paste.SetEnabled(false) // the terminal pastes
	prompt = terminal.Visible(prompt)
	in := &input{prompt: prompt}
	area.SetPromptFunc(columns(prompt), func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return in.prompt
		}
		return strings.Repeat(" ", columns(in.prompt))
	})
	area.Focus()
	in.area = area
	return in
}

// resize fits the input into a part of the screen.
func (in *input) resize(width, height int) {
	in.area.MaxHeight = max(1, height)
	in.area.SetWidth(max(10, width))
}

// update processes a key press.
func (in *input) update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	in.area, cmd = in.area.Update(msg)
	return cmd
}

// paste inserts a pasted text at the cursor.
func (in *input) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	in.insert(text, forPaste)
}

// insert inserts a text, or a mark for it if it is long.
func (in *input) insert(text string, most bounds) {
	lines := strings.Count(text, "\n") + 1
	hidden := strings.ContainsFunc(text, display.IsInvisible) || strings.ContainsRune(text, utf8.RuneError) // bubbles drops that one
	if hidden || lines > most.lines || len(text) > most.bytes || strings.Contains(text, "\t") {
		in.count++
		mark := fmt.Sprintf("[pasted %d: %d lines, %d characters]", in.count, lines, utf8.RuneCountInString(text))
		if hidden {
			mark = strings.TrimSuffix(mark, "]") + ", some of them invisible]"
		}
		in.pastes = append(in.pastes, pasted{mark, text})
		text = mark
	}
	in.update(tea.PasteMsg{Content: text})
}

// value returns the text, with the pasted pieces in the place of their marks.
func (in *input) value() string {
	if len(in.pastes) == 0 {
		return in.area.Value()
	}
	marks := make([]string, 0, 2*len(in.pastes))
	for _, p := range in.pastes {
		marks = append(marks, p.mark, p.text)
	}
	return strings.NewReplacer(marks...).Replace(in.area.Value())
}

// set replaces the text, and puts the cursor at its end.
func (in *input) set(text string) {
	in.area.Reset()
	in.pastes = nil
	if text != "" {
		in.insert(text, forEdit)
	}
	in.update(nil)
}

// empty reports whether there is no text.
func (in *input) empty() bool { return in.area.Length() == 0 }

// continues replaces a backslash before the cursor, at the end of the text, with a line
// break, and reports whether there was one.
func (in *input) continues() bool {
	text := in.area.Value()
	last := strings.TrimSuffix(text, "\\")
	if last == text || !in.atEnd() {
		return false
	}
	in.update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	in.update(tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl})
	return true
}

// before returns the text before the cursor.
func (in *input) before() string {
	lines := strings.Split(in.area.Value(), "\n")
	row := min(in.area.Line(), len(lines)-1)
	line := []rune(lines[row])
	return strings.Join(append(lines[:row:row], string(line[:min(in.area.Column(), len(line))])), "\n")
}

// atEnd reports whether the cursor is at the end of the text.
func (in *input) atEnd() bool { return len(in.before()) == len(in.area.Value()) }

// onFirstRow and onLastRow report whether the cursor cannot move further up or down.
func (in *input) onFirstRow() bool {
	return in.area.Line() == 0 && in.area.LineInfo().RowOffset == 0
}

func (in *input) onLastRow() bool {
	at := in.area.LineInfo()
	return in.area.Line() == in.area.LineCount()-1 && at.RowOffset >= at.Height-1
}

// replaceBefore replaces the last n bytes before the cursor.
func (in *input) replaceBefore(n int, with string) {
	before := in.before()
	for range utf8.RuneCountInString(before[len(before)-min(n, len(before)):]) {
		in.update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	in.update(tea.PasteMsg{Content: with})
}

// rows returns the rows of the input, and the place of the cursor in them.
func (in *input) rows() ([]string, *tea.Cursor) {
	rows := strings.Split(in.area.View(), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return rows, in.area.Cursor()
}
