// SPDX-License-Identifier: Apache-2.0

// Package plaintext reads parts of texts that need no knowledge of a configuration.
package plaintext

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Position returns the line and the column of an offset in data, both counted from 1. An
// offset inside a character counts as the start of that character.
func Position(data []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(data))
	for offset > 0 && offset < len(data) && !utf8.RuneStart(data[offset]) {
		offset--
	}
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}

// Offset returns the offset of a line and byte column in data, both counted from 1.
func Offset(data []byte, line, column int) int {
	start := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(data[start:], '\n')
		if next < 0 {
			break
		}
		start += next + 1
	}
	return start + column - 1
}

// units maps the unit suffixes of a size to bytes.
var units = map[string]int64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// Size returns the number of bytes in a text such as "512MiB". The error is
// [strconv.ErrRange] if it is too large.
func Size(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTi")
	count, err := strconv.ParseInt(digits, 10, 64)
	unit, known := units[text[len(digits):]]
	switch {
	case errors.Is(err, strconv.ErrRange), known && count > math.MaxInt64/unit:
		return 0, strconv.ErrRange
	case err != nil || !known || digits[0] == '+':
		return 0, strconv.ErrSyntax
	}
	return count * unit, nil
}

// IsToken reports whether a text is a token of RFC 9110, section 5.6.2, such as the name of
// a header.
func IsToken(text string) bool {
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (c > '~' || !strings.ContainsRune("!#$%&'*+-.^_`|~", c)) {
			return false
		}
	}
	return text != ""
}

// Plural returns the plural of a kind of values, such as "a string".
func Plural(kind string) string {
	kind = strings.TrimPrefix(strings.TrimPrefix(kind, "an "), "a ")
	if noun, rest, more := strings.Cut(kind, " with "); more {
		return noun + "s with " + rest
	}
	return kind + "s"
}
