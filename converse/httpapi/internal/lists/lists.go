// SPDX-License-Identifier: Apache-2.0

// Package lists bounds the lists of requests in JSON. An element takes hundreds of bytes of memory, and can have two in
// the body of a request.
package lists

import (
	"encoding/json"
	"fmt"
)

// Most is how many elements a list may have.
const Most = 16 << 10

// ErrTooLong is the error of a list with more elements than Most.
var ErrTooLong = fmt.Errorf("a list has more than %d elements", Most)

// Of is a list that can be read from JSON if it has at most Most elements.
type Of[T any] []T

// UnmarshalJSON implements [json.Unmarshaler]. The error of a list that is too long is [ErrTooLong].
func (l *Of[T]) UnmarshalJSON(text []byte) error {
	if commas(text) >= Most {
		return ErrTooLong
	}
	return json.Unmarshal(text, (*[]T)(l))
}

// commas returns the number of commas between the elements of a list, which is valid JSON.
func commas(text []byte) (n int) {
	depth, isText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isText && c == '\\':
			i++
		case c == '"':
			isText = !isText
		case isText:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	return n
}
