// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsInvisible reports whether a character can hide something from the people who
// read a text: control characters but line breaks and tabs, format characters
// (Unicode category Cf), among them those that change the direction, the tags and
// the joiners, line and paragraph separators, variation selectors, private use, and
// whatever else is not displayed. The two variation selectors of text and emoji are
// common and can hold nothing; the signs that span Arabic numbers are displayed.
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

// The joiners, which emoji and the scripts below need between their characters.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// joining are the scripts whose spelling uses joiners (The Unicode Standard 16.0,
// section 23.2).
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mandaic, unicode.Mongolian,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese,
}

// isJoined reports whether a joiner behind a character is part of its spelling.
func isJoined(before rune) bool {
	switch {
	case before >= 0x1f3fb && before <= 0x1f3ff, before == '\ufe0f': // the end of an emoji
		return true
	}
	return unicode.Is(unicode.So, before) || unicode.In(before, joining...)
}

// visible returns text with each invisible character as write has it. Before is the
// character before the text, 0 for none. A carriage return that ends a line is
// dropped.
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

// code is an invisible character in a text.
func code(r rune) string { return fmt.Sprintf("<U+%04X>", r) }

// EscapeJSON returns a JSON text, or several, in which invisible characters are
// escaped, so that it may go to a terminal and means the same.
func EscapeJSON(text string) string {
	return visible(0, text, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}
