// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Success decodes the usual message, a successful response, because the SDK's decoder
// allocates 32 KiB for each message. text is valid JSON. It returns nil if the message is
// anything else, or is written in an unusual form.
func Success(text []byte) *jsonrpc.Response {
	var version, id, result []byte
	for rest, more := bytes.CutPrefix(Trim(text), []byte{'{'}); more; {
		name, value, after := nextMember(rest)
		var to *[]byte
		switch string(name) {
		case `"jsonrpc"`:
			to = &version
		case `"id"`:
			to = &id
		case `"result"`:
			to = &result
		}
		if to == nil || *to != nil {
			return nil
		}
		*to, rest, more = value, after, len(after) > 0
	}
	if string(version) != `"2.0"` || len(result) == 0 || result[0] != '{' {
		return nil
	}
	response := &jsonrpc.Response{Result: bytes.Clone(result)}
	if n, err := strconv.ParseInt(string(id), 10, 32); err == nil {
		response.ID, _ = jsonrpc.MakeID(float64(n)) // numbers and strings are IDs
	} else if len(id) > 2 && id[0] == '"' && utf8.Valid(id) && bytes.IndexByte(id, '\\') < 0 {
		response.ID, _ = jsonrpc.MakeID(string(id[1 : len(id)-1]))
	} else {
		return nil
	}
	return response
}

// nextMember returns the first of the members of a valid JSON object, and the text after
// it; after is empty after the last one.
func nextMember(text []byte) (name, value, after []byte) {
	name, text = nextValue(text)
	value, text = nextValue(bytes.TrimPrefix(Trim(text), []byte{':'}))
	after, found := bytes.CutPrefix(Trim(text), []byte{','})
	if !found {
		after = nil // the closing brace
	}
	return name, value, after
}

// nextValue returns the first value of a text, which is valid, and the text after it.
func nextValue(text []byte) (value, after []byte) {
	text = Trim(text)
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
			continue
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			if depth == 0 {
				return text[:i], text[i:]
			}
			depth--
		case depth == 0 && bytes.IndexByte([]byte(" \t\r\n,:"), c) >= 0:
			return text[:i], text[i:]
		default:
			continue
		}
		if depth == 0 && !quoted {
			return text[:i+1], text[i+1:]
		}
	}
	return text, nil
}
