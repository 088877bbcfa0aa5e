// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

const (
	maxDepth  = 200 // how deep arguments, results and schemas may nest
	maxNumber = 400 // bytes that one number may take
)

// parse reads one JSON text into the values that package json uses, numbers as
// [json.Number]. It is stricter than package json in what two readers of the
// same text could take differently: a member that appears twice (RFC 8259,
// section 4) and a number beyond the range of a double (section 6) are faults.
// It also returns how many values there are. With a fault the value is nil.
func parse(text []byte) (value any, count int, faults []violation) {
	if !json.Valid(text) {
		return nil, 0, []violation{{text: syntaxFault(text)}}
	}
	r := reader{dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	value = r.value()
	if len(r.faults) > 0 {
		return nil, r.count, r.faults
	}
	return value, r.count, nil
}

func syntaxFault(text []byte) string {
	var value any
	err := json.Unmarshal(text, &value)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("not valid JSON at byte %d of %d: %v", syntax.Offset, len(text), err)
	}
	return fmt.Sprintf("not valid JSON: %v", err)
}

// reader builds the value of a text that is known to be valid.
type reader struct {
	dec    *json.Decoder
	path   []string
	count  int
	faults []violation
}

func (r *reader) fault(text string) {
	if len(r.faults) <= maxViolations {
		r.faults = append(r.faults, violation{pointer: pointerOf(r.path), text: text})
	}
}

func (r *reader) value() any {
	r.count++
	token, err := r.dec.Token()
	if err != nil {
		r.fault(fmt.Sprintf("not valid JSON: %v", err))
		return nil
	}
	switch token := token.(type) {
	case json.Delim:
		if len(r.path) >= maxDepth {
			r.skip()
			r.faults = append(r.faults[:0], violation{text: fmt.Sprintf("nested more than %d deep", maxDepth)})
			return nil
		}
		if token == '{' {
			return r.object()
		}
		return r.array()
	case json.Number:
		if problem := numberFault(token); problem != "" {
			r.fault(problem)
		}
		return token
	default:
		return token
	}
}

func (r *reader) object() map[string]any {
	object := make(map[string]any)
	for r.dec.More() {
		token, err := r.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return object // cannot be: the text is valid
		}
		r.path = append(r.path, name)
		if _, twice := object[name]; twice {
			r.fault("is given twice")
		}
		object[name] = r.value()
		r.path = r.path[:len(r.path)-1]
	}
	_, _ = r.dec.Token() // the closing brace
	return object
}

func (r *reader) array() []any {
	array := []any{}
	for r.dec.More() {
		r.path = append(r.path, strconv.Itoa(len(array)))
		array = append(array, r.value())
		r.path = r.path[:len(r.path)-1]
	}
	_, _ = r.dec.Token() // the closing bracket
	return array
}

// skip reads to the end of the object or array whose opening token was read.
func (r *reader) skip() {
	for depth := 1; depth > 0; {
		token, err := r.dec.Token()
		if err != nil {
			return
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// numberFault says what is wrong with a number that arithmetic cannot take:
// 1e999999999 is eleven bytes of text and a gigabyte of digits.
func numberFault(n json.Number) string {
	if len(n) > maxNumber {
		return fmt.Sprintf("is a number of %d characters; at most %d are allowed", len(n), maxNumber)
	}
	f, err := n.Float64()
	if err != nil {
		return fmt.Sprintf("%s is beyond the range of numbers", short(string(n)))
	}
	if f == 0 && !isZero(n) {
		return fmt.Sprintf("%s is too close to zero", short(string(n)))
	}
	return ""
}

// isZero reports whether all digits before the exponent are zero.
func isZero(n json.Number) bool {
	for _, c := range []byte(n) {
		switch {
		case c == 'e' || c == 'E':
			return true
		case '1' <= c && c <= '9':
			return false
		}
	}
	return true
}
