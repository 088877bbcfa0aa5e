// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser separates output into characters, controls and sequences (ECMA-48; the states
// follow the VT500 parser of vt100.net/emu/dec_ansi_parser).
type parser struct {
	state   parserState
	partial []byte // the beginning of a character
	prefix  byte   // of a control sequence: one of < = > ?, or 0
	params  []byte
	between []byte // intermediate bytes
	kind    byte   // of a string: the byte that opens it after ESC
	text    []byte // of a string
	escaped bool   // the string may end with the next byte
}

type parserState int

const (
	ground parserState = iota
	escape
	control // a control sequence, CSI
	stringy // a string, such as OSC or DCS
)

// maxString bounds the strings that are kept, in bytes; the rest is dropped.
const maxString = 1 << 20

const (
	bel = 7
	can = 0x18
	sub = 0x1a
	esc = 0x1b
)

// Write processes output. It never fails.
func (e *Emulator) Write(output []byte) (int, error) {
	for _, b := range output {
		e.parser.step(e, b)
	}
	return len(output), nil
}

// step processes one byte.
func (p *parser) step(e *Emulator, b byte) {
	switch {
	case p.state == stringy:
		p.stepString(e, b)
	case b == esc:
		*p = parser{state: escape}
	case b == can, b == sub:
		*p = parser{}
	case b < ' ':
		e.c0(b)
	case p.state == escape:
		p.stepEscape(e, b)
	case p.state == control:
		p.stepControl(e, b)
	default:
		p.stepText(e, b)
	}
}

// stepText collects a character.
func (p *parser) stepText(e *Emulator, b byte) {
	if b == 0x7f {
		return
	}
	p.partial = append(p.partial, b)
	for len(p.partial) > 0 && (utf8.FullRune(p.partial)) {
		r, n := utf8.DecodeRune(p.partial)
		e.print(string(r))
		p.partial = p.partial[n:]
	}
}

// stepEscape processes a byte after ESC.
func (p *parser) stepEscape(e *Emulator, b byte) {
	switch {
	case b >= ' ' && b <= '/':
		p.between = append(p.between, b)
		return
	case len(p.between) > 0: // a character set, or a test pattern
	case b == '[':
		p.state = control
		return
	case strings.IndexByte("]PX^_", b) >= 0:
		*p = parser{state: stringy, kind: b}
		return
	default:
		e.escape(b)
	}
	*p = parser{}
}

// stepControl processes a byte of a control sequence.
func (p *parser) stepControl(e *Emulator, b byte) {
	switch {
	case b >= '<' && b <= '?' && len(p.params) == 0:
		p.prefix = b
	case b >= '0' && b <= '?':
		p.params = append(p.params, b)
	case b <= '/':
		p.between = append(p.between, b)
	case b < 0x7f:
		sequence := csi{prefix: p.prefix, between: string(p.between), final: b, params: string(p.params)}
		*p = parser{}
		e.control(sequence)
	}
}

// stepString processes a byte of a string.
func (p *parser) stepString(e *Emulator, b byte) {
	switch {
	case p.escaped && b == '\\', b == bel && p.kind == ']':
		kind, text := p.kind, string(p.text)
		*p = parser{}
		e.command(kind, text)
	case p.escaped: // another sequence begins: the string is given up
		*p = parser{state: escape}
		p.step(e, b)
	case b == can, b == sub:
		*p = parser{}
	case b == esc:
		p.escaped = true
	case len(p.text) < maxString:
		p.text = append(p.text, b)
	}
}

// csi is a control sequence.
type csi struct {
	prefix  byte
	between string
	final   byte
	params  string
}

// param returns parameter i, or what is missing if there is none or it is 0.
func (c csi) param(i, missing int) int {
	all := strings.Split(c.params, ";")
	if i >= len(all) {
		return missing
	}
	first, _, _ := strings.Cut(all[i], ":")
	n, err := strconv.Atoi(first)
	if err != nil || n == 0 {
		return missing
	}
	return min(n, 1<<15)
}

// numbers returns all parameters.
func (c csi) numbers() []int {
	var all []int
	for i := range strings.Count(c.params, ";") + 1 {
		all = append(all, c.param(i, 0))
	}
	return all
}
