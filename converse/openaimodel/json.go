// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// This file writes JSON by appending: requests are built in one growing buffer,
// so that nothing is allocated or copied for a message but its own bytes.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, as RFC 8259 section 8.1 wants UTF-8 alone.
func appendString(dst []byte, s string) []byte {
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

// appendEscape appends the escape of an ASCII byte that a JSON string cannot
// hold as it is.
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

// appendMember appends a member of an object whose value is a string, with a
// comma before it unless it is the first.
func appendMember(dst []byte, name, value string) []byte {
	return appendString(appendName(dst, name), value)
}

// appendName appends the name of an object's member, with a comma before it
// unless it is the first. Names are our own and need no escapes.
func appendName(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), '"')
	return append(dst, ':')
}

// canonical returns v as JSON text that is the same whenever the value is:
// members sorted, no spaces, nothing escaped that need not be.
func canonical(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// decode parses one JSON text, keeping numbers as they are written.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err == nil || decoder.More() {
		return nil, errTrailing
	}
	return v, nil
}
