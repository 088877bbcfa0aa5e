// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Members splits a JSON object. Anything else is an error. The values are parts of raw.
func Members(raw json.RawMessage) (map[string]json.RawMessage, error) {
	rest, isObject := bytes.CutPrefix(space(raw), []byte{'{'})
	if !isObject || !json.Valid(raw) {
		return nil, cmp.Or(json.Unmarshal(raw, new(map[string]json.RawMessage)), errors.New("null"))
	}
	m := make(map[string]json.RawMessage)
	for len(rest) > 0 {
		name, value, after := nextMember(rest)
		if len(name) == 0 {
			break // of an empty object
		}
		text, err := String(name)
		if err != nil {
			return nil, err // cannot happen: it is valid
		}
		m[text], rest = value, after
	}
	return m, nil
}

// Member returns the last member of that name of a valid JSON object, or nil.
func Member(raw json.RawMessage, name string) (found json.RawMessage) {
	rest, isObject := bytes.CutPrefix(space(raw), []byte{'{'})
	for isObject && len(rest) > 0 {
		quoted, value, after := nextMember(rest)
		if isName(quoted, name) {
			found = value
		}
		rest = after
	}
	return found
}

// isName reports whether a JSON string, or nothing, is a name.
func isName(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		text, err := String(quoted)
		return err == nil && text == name
	}
	n := len(quoted)
	return n > 1 && string(quoted[1:n-1]) == name
}

// Elements splits a JSON array, and reports whether raw is one. The elements are parts of raw.
func Elements(raw json.RawMessage) (elements []json.RawMessage, isArray bool) {
	rest, isArray := bytes.CutPrefix(space(raw), []byte{'['})
	if !isArray || !json.Valid(raw) {
		return nil, false
	}
	for more := true; more; {
		var value []byte
		if value, rest = nextValue(rest); len(value) == 0 {
			break // of an empty array
		}
		elements = append(elements, value)
		rest, more = bytes.CutPrefix(space(rest), []byte{','})
	}
	return elements, true
}

// String decodes a JSON string. As in encoding/json, null is the empty one.
func String(raw json.RawMessage) (string, error) {
	raw = space(raw)
	if n := len(raw); n > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) && json.Valid(raw) {
		if text, ok := common[string(raw[1:n-1])]; ok {
			return text, nil
		}
		return string(raw[1 : n-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// common has texts that most results contain, so that they are not allocated for each.
var common = func() map[string]string {
	texts := map[string]string{}
	for _, text := range []string{"_meta", "annotations", "complete", "content", "input_required", "isError", "resultType", "structuredContent", "text", "type"} {
		texts[text] = text
	}
	return texts
}()

// space removes the white space of JSON before and after a text.
func space(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

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
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = max(StringEnd(text, i)-1, i)
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
		if depth == 0 {
			return text[:i+1], text[i+1:]
		}
	}
	return text, nil
}
