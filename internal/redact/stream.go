// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// PartFunc redacts a text that has arrived only in part. It returns the beginning of the
// text, redacted, and the rest as it is, which may be the beginning of a secret and belongs
// before the next part. After the last part the rest is empty: the possible beginning of a
// secret is then redacted if it has at least 4 bytes.
type PartFunc func(text string, last bool) (clean, held string)

// Stream redacts a text that arrives in pieces. It keeps the possible beginning of
// a secret until more has arrived. The zero value is a stream without text.
type Stream struct{ held string }

// Next returns the part before the possible beginning of a secret, redacted. A nil clean
// leaves the text as it is.
func (s *Stream) Next(piece string, clean PartFunc) string {
	if clean == nil {
		return piece
	}
	var text string
	text, s.held = clean(s.held+piece, false)
	return text
}

// Rest returns the end of the text, redacted. The stream is empty then.
func (s *Stream) Rest(clean PartFunc) string {
	held := s.held
	s.held = ""
	if held == "" || clean == nil {
		return held
	}
	text, _ := clean(held, true)
	return text
}

// index prepares c for part.
func (c *cleaner) index() *cleaner {
	if c != nil {
		c.first = map[byte][]string{}
		for _, form := range c.forms {
			c.first[form[0]] = append(c.first[form[0]], form)
		}
	}
	return c
}

// part is a [PartFunc]. It needs the index.
func (c *cleaner) part(text string, last bool) (clean, held string) {
	if c == nil {
		return text, ""
	}
	if !last {
		end := c.finished(text[:len(text)-unfinishedRune(text)])
		return c.text(text[:end]), text[end:]
	}
	end := c.begun(text)
	if len(text)-end < leastPiece {
		return c.text(text), ""
	}
	return c.text(text[:end]) + Mark, ""
}

// finished returns how many bytes of a text can be cleaned before more arrives. An
// ellipsis needs the text around it, see [withoutPieces]: as long as all that is passed on
// after it is a part of a secret, it may be the end of one. What is between two ellipses is
// not a part of a secret if it is too short.
func (c *cleaner) finished(text string) int {
	end, next := c.begun(text), len(text)+leastPiece
	for {
		before := strings.LastIndex(text[:end], ellipsis)
		if before < 0 || next-before-len(ellipsis) < leastPiece || !c.within(text[before+len(ellipsis):end]) {
			return end
		}
		end, next = c.begun(text[:before]), before
	}
}

// begun returns the offset of the first form that begins in a text and ends, perhaps, after
// it; or the length of the text. Like the Replacer it passes over each form that it finds.
func (c *cleaner) begun(text string) int {
next:
	for i := 0; i < len(text); {
		rest := text[i:]
		for _, form := range c.first[rest[0]] {
			switch {
			case len(form) > len(rest):
				if strings.HasPrefix(form, rest) {
					return i
				}
			case strings.HasPrefix(rest, form):
				i += len(form)
				continue next
			}
		}
		i++
	}
	return len(text)
}

// within reports whether a form contains a text.
func (c *cleaner) within(text string) bool {
	return slices.ContainsFunc(c.forms, func(form string) bool { return strings.Contains(form, text) })
}

// unfinishedRune returns how many bytes at the end of a text begin a character.
func unfinishedRune(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRuneInString(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
