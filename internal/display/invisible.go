// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsInvisible reports whether a character can hide something from people who read
// a text. These are control characters except newline and tab, format characters
// (Unicode category Cf), including those for direction, tags and joiners, line
// and paragraph separators, variation selectors, private use, and other
// characters that are not displayed. The two variation selectors for text and
// emoji do not count, because they are common and cannot hide anything, nor do
// the signs that span Arabic numbers, because they are displayed.
func IsInvisible(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\ufe0e', r == '\ufe0f', unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case r < unicode.MaxASCII:
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// The joiners, which emoji and the scripts below require between their
// characters.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// joining lists the scripts whose spelling uses joiners (The Unicode Standard
// 16.0, section 23.2).
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mandaic, unicode.Mongolian,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese,
}

// isJoined reports whether a joiner after the character before is part of the
// spelling.
func isJoined(before rune) bool {
	switch {
	case before >= 0x1f3fb && before <= 0x1f3ff, before == '\ufe0f': // the end of an emoji
		return true
	}
	return unicode.Is(unicode.So, before) || unicode.In(before, joining...)
}

// visible returns text with each invisible character replaced by the result of
// write. before is the character that precedes the text, or 0. A carriage return
// at the end of a line is dropped.
func visible(before rune, text string, write func(rune) string) string {
	if strings.IndexFunc(text, IsInvisible) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		rest := text[i:]
		switch {
		case r == '\r' && (len(rest) == 1 || rest[1] == '\n'):
		case IsInvisible(r) && !((r == joiner || r == nonJoiner) && isJoined(before)):
			b.WriteString(write(r))
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// code returns the visible code for an invisible character.
func code(r rune) string { return fmt.Sprintf("<U+%04X>", r) }

// EscapeJSON escapes the invisible characters in one or more JSON texts, so that
// they are safe for a terminal and keep their meaning.
func EscapeJSON(text string) string {
	return visible(0, text, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// HTML replaces the invisible characters in a piece of HTML by the codes that
// [Text] uses, escaped.
func HTML(markup string) string {
	return visible(0, markup, func(r rune) string { return html.EscapeString(code(r)) })
}
