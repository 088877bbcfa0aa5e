// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"unicode"
)

// maxHeld bounds the text that a [Stream] holds back, in bytes.
const maxHeld = 4 << 10

// Stream redacts a text that arrives in pieces. It holds back a word that is not finished,
// because it may be the beginning of a secret. The zero value is a stream without text.
type Stream struct{ held []byte }

// Next returns the text that the next piece finishes, redacted. A nil clean leaves the text
// as it is.
func (s *Stream) Next(piece string, clean func(text string) string) string {
	if clean == nil {
		return piece
	}
	before := len(s.held)
	s.held = append(s.held, piece...)
	end := bytes.LastIndexFunc(s.held[before:], endsWord)
	switch {
	case end >= 0:
		end += before
		for end++; end < len(s.held) && s.held[end]&0xc0 == 0x80; end++ { // the rest of the character
		}
	case len(s.held) > maxHeld:
		end = len(s.held)
	default:
		return ""
	}
	text := clean(string(s.held[:end]))
	s.held = append(s.held[:0], s.held[end:]...)
	return text
}

// Rest returns the end of the text, redacted. The stream is empty then.
func (s *Stream) Rest(clean func(text string) string) string {
	if len(s.held) == 0 {
		return ""
	}
	text := clean(string(s.held))
	s.held = nil
	return text
}

// endsWord reports whether no secret continues after a character: a space, or a character
// of the scripts that have no spaces between words, which begin with Thai.
func endsWord(r rune) bool { return unicode.IsSpace(r) || r >= 0x0e00 && r != unicode.ReplacementChar }
