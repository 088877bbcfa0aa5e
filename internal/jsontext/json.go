// SPDX-License-Identifier: Apache-2.0

// Package jsontext writes JSON, and scans it without decoding it. A request to a model is
// built by appending to one growing buffer, so that a message costs no allocation or copy
// apart from its own bytes.
package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 is replaced by U+FFFD, because
// RFC 8259 section 8.1 requires UTF-8.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
		} else {
			dst = appendEscape(append(dst, s[start:i]...), b)
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendEscape appends the escape of an ASCII byte that a JSON string must not contain
// unescaped.
func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
}

// AppendMember appends an object member with a string value, preceded by a comma unless
// it is the first.
func AppendMember(dst []byte, name, value string) []byte {
	return AppendString(AppendName(dst, name), value)
}

// AppendName appends the name of an object member, preceded by a comma unless it is the
// first. It writes the name as it is: use it only for names that need no escapes.
func AppendName(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), '"')
	return append(dst, ':')
}

// AppendComma appends a comma unless a list has just begun.
func AppendComma(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}

// Encode returns the JSON encoding of v without escapes for HTML, and without a newline at
// its end. It is the same for equal values: it has no spaces, and the members of maps are
// sorted.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Plain returns a copy of an object that has only the types of [encoding/json]: lists are
// []any, objects map[string]any, and numbers [json.Number].
func Plain(object map[string]any) (map[string]any, error) {
	text, err := Encode(object)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain map[string]any
	return plain, decoder.Decode(&plain)
}

// Compact returns text without spaces between its tokens. It returns text unchanged
// if it is not JSON.
func Compact(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// IsObject reports whether text is one JSON object.
func IsObject(text []byte) bool {
	return json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

// StringEnd returns the offset after the JSON string that begins at begin, or the length of
// text if the string does not end.
func StringEnd(text []byte, begin int) int {
	for i := begin + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// Depth returns how deep the objects and lists of a JSON text nest. The text may be invalid.
func Depth(text []byte) int {
	deepest, level := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = StringEnd(text, i) - 1
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}
	return deepest
}

// Milliseconds returns d as JSON has it: in milliseconds, rounded to microseconds.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// Fields returns the members of a request, each preceded by a comma, sorted by name.
func Fields(fields map[string]any) (string, error) {
	text := []byte{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, err := Encode(fields[name])
		if err != nil {
			return "", fmt.Errorf("the field %q of the request: %w", name, err)
		}
		text = append(AppendString(append(text, ','), name), ':')
		text = append(text, value...)
	}
	return string(text), nil
}
