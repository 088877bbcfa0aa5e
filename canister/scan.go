// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file scan JSON text that has been found valid.
// encoding/json is not used because it silently takes the last of duplicate
// members, ignores the case of names, and replaces text that it cannot decode by
// U+FFFD.

// typeOf describes the type of the value raw, for error messages.
func typeOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// wrongType returns the error for raw where a value of type want is required.
func wrongType(want string, raw []byte) error {
	return fmt.Errorf("want %s, got %s", want, typeOf(raw))
}

// rawMember is one member of an object in its source form. name can share memory
// with the text.
type rawMember struct {
	name, raw []byte
}

// splitObject appends the members of the object at the start of raw, in their
// order, and returns the index of its end.
func splitObject(members []rawMember, raw []byte) (_ []rawMember, end int, err error) {
	if raw[0] != '{' {
		return nil, 0, wrongType("an object", raw)
	}
	w := walk{raw, 1}
	for w.more() {
		start := w.at
		w.at = skipString(raw, start)
		name, err := unquoted(raw[start:w.at])
		if err != nil {
			return nil, 0, fmt.Errorf("member name %s: %w", clip(raw[start:w.at]), err)
		}
		w.more()
		members = append(members, rawMember{name, w.value()})
	}
	return members, w.at, nil
}

// lookup returns the value of the first member with that name, or nil.
func lookup(members []rawMember, name string) []byte {
	for _, m := range members {
		if string(m.name) == name {
			return m.raw
		}
	}
	return nil
}

// walk iterates over the direct values of an array or object; in an object, each
// name precedes its value. It starts after the opening bracket.
type walk struct {
	raw []byte
	at  int
}

// more advances to the next value and reports whether there is one; if not, it
// advances past the closing bracket.
func (w *walk) more() bool {
	for {
		switch w.raw[w.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			w.at++
		case ']', '}':
			w.at++
			return false
		default:
			return true
		}
	}
}

// value returns the current value and advances past it.
func (w *walk) value() []byte {
	start := w.at
	w.at = skip(w.raw, start)
	return w.raw[start:w.at]
}

// skip returns the end of the value that begins at raw[i].
func skip(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		return skipNested(raw, i)
	}
	for i < len(raw) && bytes.IndexByte([]byte(" \t\r\n,:]}"), raw[i]) < 0 {
		i++
	}
	return i
}

// skipString returns the end of the string that begins at raw[i]: a quote after an even number of
// backslashes. To look for quotes alone is faster than to look at each escape.
func skipString(raw []byte, i int) int {
	for i++; ; i++ {
		quote := bytes.IndexByte(raw[i:], '"')
		if quote < 0 {
			return len(raw) // the string does not end, so raw is not JSON
		}
		i += quote
		escapes := 0
		for raw[i-1-escapes] == '\\' { // ends at the first quote of the string
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

func skipNested(raw []byte, i int) int {
	for depth := 0; ; {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// nesting returns the maximum depth of nested arrays and objects in raw.
func nesting(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = skipString(raw, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// appendQuoted appends s, which must be valid UTF-8, as a JSON string. It uses
// the escapes of RFC 8785 section 3.2.2.2: the fewest that JSON allows, so that
// every text has exactly one form.
func appendQuoted(dst []byte, s string) []byte {
	const short, hex = "btn\x00fr", "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch {
		case c >= ' ':
			dst = append(dst, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			dst = append(dst, '\\', short[c-'\b'])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// unquote returns the text of a JSON string. An unpaired surrogate is an error,
// because it is not a character.
func unquote(raw []byte) (string, error) {
	rest := raw[1 : len(raw)-1]
	i := bytes.IndexByte(rest, '\\')
	if i < 0 {
		return string(rest), nil
	}
	var text strings.Builder
	text.Grow(len(rest))
	for ; i >= 0; i = bytes.IndexByte(rest, '\\') {
		text.Write(rest[:i])
		if rest[i+1] != 'u' {
			text.WriteByte(unescape(rest[i+1]))
			rest = rest[i+2:]
			continue
		}
		r, size := escapedRune(rest[i:])
		if r == utf8.RuneError && size == 0 {
			return "", errors.New(`a \u escape is half of a surrogate pair`)
		}
		text.WriteRune(r)
		rest = rest[i+size:]
	}
	text.Write(rest)
	return text.String(), nil
}

// unquoted is like unquote but returns a part of raw if nothing is escaped.
func unquoted(raw []byte) ([]byte, error) {
	if rest := raw[1 : len(raw)-1]; bytes.IndexByte(rest, '\\') < 0 {
		return rest, nil
	}
	text, err := unquote(raw)
	return []byte(text), err
}

// unescape returns the character that c stands for after a backslash.
func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // a quote, a slash or a backslash
}

// escapedRune decodes the \u escape, or the surrogate pair of two escapes, at the
// start of s. It returns the character and its length in bytes, which is 0 for
// half of a pair.
func escapedRune(s []byte) (rune, int) {
	r := hexRune(s[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexRune(s[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 0
}

func hexRune(digits []byte) rune {
	var r rune
	for _, c := range digits {
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// clip quotes a name for an error message and limits its length.
func clip[T string | []byte](name T) string {
	const most = 60
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
