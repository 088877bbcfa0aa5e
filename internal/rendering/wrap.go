// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strings"
	"unicode/utf8"
)

// wrap breaks spans into lines of at most width columns: at newlines, at spaces, between
// wide characters, and within words that are longer than a line.
func wrap(spans []span, width int) [][]span {
	w := wrapper{width: max(2, width), indented: true}
	for _, one := range spans {
		w.add(one)
	}
	w.endWord()
	w.endLine()
	return w.lines
}

// wrapper is the state of wrap.
type wrapper struct {
	width    int
	lines    [][]span
	line     piece
	space    piece // after line
	word     piece // after space
	wide     bool  // the word ends with a wide character, after which the line may break
	long     bool  // the word continues one that was longer than a line
	indented bool  // line is empty and begins at a newline, so that its spaces count
}

// piece is a part of a line.
type piece struct {
	spans   []span
	columns int
}

func (p *piece) add(text string, as span, columns int) {
	p.columns += columns
	if last := len(p.spans) - 1; last >= 0 && p.spans[last].ink == as.ink && p.spans[last].link == as.link {
		p.spans[last].text += text
		return
	}
	p.spans = append(p.spans, span{text: text, ink: as.ink, link: as.link})
}

func (w *wrapper) add(one span) {
	for text := one.text; text != ""; {
		if n := wordLength(text); n > 0 {
			if w.wide {
				w.endWord()
			}
			w.addWord(text[:n], one, n)
			text = text[n:]
			continue
		}
		value, n := cluster(text)
		w.cluster(value, n, one)
		text = text[len(value):]
	}
}

// addWord appends to the word, and moves a word that is longer than a line.
func (w *wrapper) addWord(text string, as span, columns int) {
	w.word.add(text, as, columns)
	if w.word.columns > w.width {
		w.endWord()
		w.long = true
	}
}

// wordLength returns how many bytes of visible ASCII text begins with, except the last
// one, which may be part of a longer cluster.
func wordLength(text string) int {
	n := 0
	for n < len(text) && text[n] > ' ' && text[n] < 0x7f {
		n++
	}
	if n < len(text) && text[n] >= utf8.RuneSelf {
		n--
	}
	return max(0, n)
}

// cluster handles one cluster of characters.
func (w *wrapper) cluster(text string, columns int, as span) {
	switch {
	case text == "\n":
		w.endWord()
		w.endLine()
		w.indented = true
	case text == " ":
		w.endWord()
		w.space.add(text, as, 1)
	case text == "\t":
		w.endWord()
		stop := tabStop - (w.line.columns+w.space.columns)%tabStop
		w.space.add(strings.Repeat(" ", stop), as, stop)
	case columns >= 2:
		if !closing(text) {
			w.endWord()
		}
		w.addWord(text, as, columns)
		w.wide = true
	default:
		if w.wide && !closing(text) {
			w.endWord()
		}
		w.addWord(text, as, columns)
	}
}

// closing reports whether a character must not begin a line: closing punctuation, as in
// the rules of Japanese and Chinese typesetting.
func closing(text string) bool {
	return strings.Contains("、。，．・：；？！）］｝」』】〉》〕…ー,.:;?!)]}%", text)
}

// endWord moves the space and the word to the line, or to the next line.
func (w *wrapper) endWord() {
	long := w.long
	w.wide, w.long = false, false
	switch {
	case len(w.word.spans) == 0:
		return
	case long:
	case w.line.columns == 0 && !w.indented:
		w.space = piece{}
	case w.line.columns+w.space.columns+w.word.columns > w.width:
		if w.line.columns > 0 {
			w.endLine()
		}
		w.space = piece{}
	}
	w.line.spans = append(w.line.spans, w.space.spans...)
	w.line.columns += w.space.columns
	if w.line.columns+w.word.columns > w.width {
		w.breakWord()
	} else {
		w.line.spans = append(w.line.spans, w.word.spans...)
		w.line.columns += w.word.columns
	}
	w.space, w.word, w.indented = piece{}, piece{}, false
}

// breakWord moves a word that is longer than the rest of the line.
func (w *wrapper) breakWord() {
	for _, one := range w.word.spans {
		for text := one.text; text != ""; {
			value, n := cluster(text)
			text = text[len(value):]
			if w.line.columns+n > w.width && w.line.columns > 0 {
				w.endLine()
			}
			w.line.add(value, one, n)
		}
	}
}

func (w *wrapper) endLine() {
	w.lines = append(w.lines, w.line.spans)
	w.line, w.space, w.indented = piece{}, piece{}, false
}

// cutSpaces removes the spaces at the end of a piece, and returns them, unless there is
// nothing else.
func (p *piece) cutSpaces() (spaces piece) {
	for last := len(p.spans) - 1; last >= 0; last-- {
		one := p.spans[last]
		text := strings.TrimRight(one.text, " ")
		if n := len(one.text) - len(text); n > 0 {
			spaces.spans = append([]span{{text: one.text[len(text):], ink: one.ink, link: one.link}}, spaces.spans...)
			spaces.columns += n
		}
		if text != "" {
			p.spans[last].text = text
			p.spans, p.columns = p.spans[:last+1], p.columns-spaces.columns
			return spaces
		}
	}
	return piece{}
}

// chop breaks spans into lines of at most width columns, at newlines and anywhere else
// where a line is too long. It expands tabs and keeps all spaces: those before a break move
// to the next line, where they can be seen.
func chop(spans []span, width int) [][]span {
	width = max(2, width)
	var lines [][]span
	var line piece
	add := func(text string, as span, n int) {
		if line.columns+n > width && line.columns > 0 {
			next := line.cutSpaces()
			lines = append(lines, line.spans)
			line = next
		}
		line.add(text, as, n)
	}
	for _, one := range spans {
		for text := one.text; text != ""; {
			n := min(wordLength(text), width-line.columns)
			if n > 0 {
				line.add(text[:n], one, n)
				text = text[n:]
				continue
			}
			value, n := cluster(text)
			text = text[len(value):]
			switch value {
			case "\n":
				lines = append(lines, line.spans)
				line = piece{}
			case "\t":
				for range tabStop - line.columns%tabStop {
					add(" ", one, 1)
				}
			default:
				add(value, one, n)
			}
		}
	}
	return append(lines, line.spans)
}
