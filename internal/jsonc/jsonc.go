// SPDX-License-Identifier: Apache-2.0

// Package jsonc reads JSON with comments and trailing commas, as some programs accept it
// in their configuration files.
package jsonc

import (
	"bytes"

	"github.com/consort-go/consort/internal/jsontext"
)

// Plain returns data as plain JSON: comments and commas before a closing bracket become
// spaces, so that each remaining byte keeps its offset and its line. Text that is not
// valid JSON otherwise stays invalid. It does not change data.
func Plain(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // the offset of a comma, if nothing but space has followed it
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			i = jsontext.StringEnd(out, i) - 1
			comma = -1
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blankComment(out, i)
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case c > ' ':
			comma = -1
		}
	}
	return out
}

// blankComment replaces the comment at start by spaces, except line breaks, and returns
// the offset of its last byte.
func blankComment(data []byte, start int) int {
	end, length := []byte("\n"), 0
	if data[start+1] == '*' {
		end, length = []byte("*/"), 2
	}
	stop := len(data)
	if i := bytes.Index(data[start+2:], end); i >= 0 {
		stop = start + 2 + i + length
	}
	for i := start; i < stop; i++ {
		if data[i] != '\n' && data[i] != '\r' {
			data[i] = ' '
		}
	}
	return stop - 1
}
