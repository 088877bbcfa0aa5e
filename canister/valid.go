// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// valid reports whether text is one JSON value, with optional white space around
// it, as json.Valid does. It is much faster: most of a line is strings, and it
// scans those eight bytes at a time. The grammar is that in RFC 8259.
func valid(text []byte) bool {
	g := grammar{text: text}
	return g.value(0) && g.at == len(text)
}

// deepest is the maximum nesting of arrays and objects, as in encoding/json.
const deepest = 10000

// grammar scans a text. Each method reports whether the element that it is named
// after is next, and advances past it.
type grammar struct {
	text []byte
	at   int
}

// one matches the byte b; it does not advance past any other byte.
func (g *grammar) one(b byte) bool {
	if g.at == len(g.text) || g.text[g.at] != b {
		return false
	}
	g.at++
	return true
}

func (g *grammar) space() {
	for g.one(' ') || g.one('\n') || g.one('\r') || g.one('\t') {
	}
}

// value matches a value at the given nesting depth, and the white space around
// it.
func (g *grammar) value(depth int) bool {
	g.space()
	var good bool
	switch {
	case g.one('"'):
		good = g.quoted()
	case g.one('{'):
		good = g.list('}', depth+1)
	case g.one('['):
		good = g.list(']', depth+1)
	default:
		good = g.word("true") || g.word("false") || g.word("null") || g.number()
	}
	g.space()
	return good
}

// list matches the elements of an array or object, and the closing bracket.
func (g *grammar) list(closing byte, depth int) bool {
	if depth > deepest {
		return false
	}
	if g.space(); g.one(closing) {
		return true
	}
	for (closing == ']' || g.name()) && g.value(depth) {
		if g.one(closing) {
			return true
		}
		if !g.one(',') {
			return false
		}
	}
	return false
}

// name matches the name of a member, and the colon.
func (g *grammar) name() bool {
	g.space()
	if !g.one('"') || !g.quoted() {
		return false
	}
	g.space()
	return g.one(':')
}

func (g *grammar) word(word string) bool {
	if !bytes.HasPrefix(g.text[g.at:], []byte(word)) {
		return false
	}
	g.at += len(word)
	return true
}

func (g *grammar) number() bool {
	g.one('-')
	if !g.one('0') && !g.digits() {
		return false
	}
	if g.one('.') && !g.digits() {
		return false
	}
	if !g.one('e') && !g.one('E') {
		return true
	}
	if !g.one('+') {
		g.one('-')
	}
	return g.digits()
}

func (g *grammar) digits() bool {
	start := g.at
	for g.at < len(g.text) && g.text[g.at] >= '0' && g.text[g.at] <= '9' {
		g.at++
	}
	return g.at > start
}

// quoted matches a string after its opening quote.
func (g *grammar) quoted() bool {
	for {
		g.at += plain(g.text[g.at:])
		if g.one('"') {
			return true
		}
		if !g.one('\\') || !g.escaped() { // otherwise it is a control character or the end
			return false
		}
	}
}

// escaped matches the rest of an escape after the backslash.
func (g *grammar) escaped() bool {
	if g.one('u') {
		for range 4 {
			if g.at == len(g.text) || !isHex(g.text[g.at]) {
				return false
			}
			g.at++
		}
		return true
	}
	if g.at == len(g.text) || bytes.IndexByte([]byte(`"\/bfnrt`), g.text[g.at]) < 0 {
		return false
	}
	g.at++
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// plain returns the number of leading bytes that are not a quote, a backslash or
// a control character.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	zero := func(w uint64) uint64 { return (w - ones) &^ w & highs } // the lowest bit set marks the first zero byte
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		if odd := zero(w^ones*'"') | zero(w^ones*'\\') | (w-ones*' ')&^w&highs; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	for i < len(text) && text[i] != '"' && text[i] != '\\' && text[i] >= ' ' {
		i++
	}
	return i
}
