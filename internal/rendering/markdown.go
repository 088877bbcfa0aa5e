// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/display"
)

// maxBlock bounds the source of a block and of a line that is held back until it is
// finished, in bytes. A longer one is finished in parts, at the end of a line if it has
// several, so that memory and the work of [Markdown.Tail] are bounded.
const maxBlock = 4096

// Markdown renders markdown as it streams in. [Markdown.Write] returns finished lines,
// which will not change; [Markdown.Tail] renders the rest as if the text ended here. The
// work for each byte, and the memory, are bounded.
//
// No text is lost. Other syntax, such as HTML and links by reference, is shown as it is
// written; newlines within a paragraph are kept.
type Markdown struct {
	blocks blocks
	line   []byte // the beginning of the current line
	middle bool   // the current line began before line
	before rune   // the character before line, if middle is set
}

// NewMarkdown returns a renderer for a terminal of the given style.
func NewMarkdown(style Style) *Markdown { return &Markdown{blocks: blocks{style: style}} }

// RenderMarkdown renders a whole text and returns its lines.
func RenderMarkdown(style Style, source string) []string {
	m := NewMarkdown(style)
	return append(m.Write(source), m.Finish()...)
}

// SetStyle changes the style, for example after the terminal was resized. It affects all
// that is not finished yet.
func (m *Markdown) SetStyle(style Style) { m.blocks.style = style }

// Write adds the next piece of source and returns the lines that it finishes, which may be
// none. A piece may end anywhere, even within a character.
func (m *Markdown) Write(delta string) []string {
	for delta != "" {
		piece := delta[:min(len(delta), maxBlock)]
		newline := strings.IndexByte(piece, '\n')
		if newline >= 0 {
			piece = piece[:newline]
		}
		m.line = append(m.line, piece...)
		delta = delta[len(piece):]
		if newline >= 0 {
			delta = delta[1:]
			m.take(len(m.line), true)
		}
		for len(m.line) > maxBlock {
			m.take(m.cut(), false)
		}
	}
	return m.blocks.flush()
}

// Finish ends the text and returns its last lines. Further pieces begin a new text.
func (m *Markdown) Finish() []string {
	if len(m.line) > 0 {
		m.take(len(m.line), true)
	}
	m.blocks.finish()
	rest := m.blocks.flush()
	m.blocks = blocks{style: m.blocks.style}
	m.middle = false
	return rest
}

// Tail returns the lines of the source that is not finished yet. It changes nothing.
func (m *Markdown) Tail() []string {
	b := m.blocks.clone()
	if line := completeRunes(m.line); len(line) > 0 && !isMarker(line) {
		text := m.visible(line)
		if b.leaf.kind != fenced && b.leaf.kind != indented {
			text = closeMarks(text)
		}
		b.line(text, m.middle, true)
	}
	b.finish()
	return b.flush()
}

// take moves the first n bytes of the line to the blocks. End is set if they end the line.
func (m *Markdown) take(n int, end bool) {
	text := m.visible(m.line[:n])
	m.blocks.line(text, m.middle, end)
	m.before, _ = utf8.DecodeLastRune(m.line[:n])
	m.line = slices.Delete(m.line, 0, n)
	m.middle = !end
}

// visible returns a part of the line with invisible characters made visible.
func (m *Markdown) visible(line []byte) string {
	before := rune('\n')
	if m.middle {
		before = m.before
	}
	return display.Continue(before, string(line))
}

// cut returns where to divide a line that is too long: after a space if there is one in
// its second half, and otherwise between two characters.
func (m *Markdown) cut() int {
	if at := bytes.LastIndexByte(m.line[:maxBlock], ' '); at > maxBlock/2 {
		return at + 1
	}
	at := maxBlock
	for at > maxBlock-utf8.UTFMax && (!utf8.RuneStart(m.line[at]) || m.line[at-1] == '\r') {
		at--
	}
	return at
}

// completeRunes returns text without an incomplete character at its end, and without a
// carriage return, which may belong to the end of the line.
func completeRunes(text []byte) []byte {
	for back := 1; back <= min(len(text), utf8.UTFMax); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				text = text[:at]
			}
			break
		}
	}
	return bytes.TrimSuffix(text, []byte("\r"))
}

// isMarker reports whether a line that is not complete consists of characters that may
// begin or end a block, and will then not be shown.
func isMarker(line []byte) bool {
	return len(bytes.Trim(line, " #`~=-*+>|:_")) == 0
}

// closeMarks closes emphasis and code that the end of the last line left open, so that
// they do not flicker.
func closeMarks(line string) string {
	if strings.Count(line, "`")%2 == 1 && !strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
		if strings.HasSuffix(line, "`") {
			return line[:len(line)-1]
		}
		return line + "`"
	}
	if strings.Count(line, "**")%2 == 0 || strings.Contains(line, "`") {
		return line
	}
	trimmed := strings.TrimRight(line, " ")
	if open, ok := strings.CutSuffix(trimmed, "**"); ok {
		return open
	}
	if open, ok := strings.CutSuffix(trimmed, "*"); ok {
		return open + "**"
	}
	return trimmed + "**"
}
