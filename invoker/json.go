// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
)

const (
	maxDepth  = 200 // maximum nesting of arguments, results and schemas
	maxNumber = 400 // maximum length of a number in bytes
)

// parse decodes one JSON text into the types that package json uses, with numbers
// as [json.Number]. It rejects texts that two readers could interpret
// differently, which package json accepts: a duplicate member (RFC 8259, section
// 4) and a number beyond the range of a double (section 6). It also returns the
// number of values. If there are faults, value is nil.
func parse(text []byte) (value any, count int, faults []violation) {
	switch {
	case jsontext.Depth(text) > maxDepth:
		return nil, 0, []violation{{text: fmt.Sprintf("nested more than %d deep", maxDepth)}}
	case !json.Valid(text):
		return nil, 0, []violation{{text: syntaxFault(text)}}
	}
	r := reader{text: text}
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

// reader decodes a text that is known to be valid.
type reader struct {
	text   []byte
	at     int // the next byte
	path   []string
	count  int
	faults []violation
}

func (r *reader) fault(text string) {
	if len(r.faults) <= maxViolations {
		r.faults = append(r.faults, violation{pointer: pointerOf(r.path), text: text})
	}
}

// next skips white space and returns the byte after it.
func (r *reader) next() byte {
	for {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
}

func (r *reader) value() any {
	r.count++
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.string()
	case 't':
		r.at += len("true")
		return true
	case 'f':
		r.at += len("false")
		return false
	case 'n':
		r.at += len("null")
		return nil
	}
	start := r.at
	for r.at < len(r.text) && strings.IndexByte("+-.0123456789Ee", r.text[r.at]) >= 0 {
		r.at++
	}
	n := json.Number(r.text[start:r.at])
	if problem := numberFault(n); problem != "" {
		r.fault(problem)
	}
	return n
}

func (r *reader) string() string {
	start, plain := r.at, true
	for r.at++; r.text[r.at] != '"'; r.at++ {
		switch c := r.text[r.at]; {
		case c == '\\':
			plain = false
			r.at++
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	r.at++
	if plain {
		return string(r.text[start+1 : r.at-1])
	}
	var s string
	if err := json.Unmarshal(r.text[start:r.at], &s); err != nil {
		r.fault(err.Error())
	}
	return s
}

func (r *reader) object() map[string]any {
	object := make(map[string]any)
	for r.at++; r.next() != '}'; { // the opening brace
		if r.text[r.at] == ',' {
			r.at++
			r.next()
		}
		r.path = append(r.path, r.string())
		r.next()
		r.at++ // the colon
		name := r.path[len(r.path)-1]
		if _, twice := object[name]; twice {
			r.fault("is given twice")
		}
		object[name] = r.value()
		r.path = r.path[:len(r.path)-1]
	}
	r.at++
	return object
}

func (r *reader) array() []any {
	array := []any{}
	for r.at++; r.next() != ']'; { // the opening bracket
		if r.text[r.at] == ',' {
			r.at++
		}
		r.path = append(r.path, strconv.Itoa(len(array)))
		array = append(array, r.value())
		r.path = r.path[:len(r.path)-1]
	}
	r.at++
	return array
}

// numberFault describes a number that cannot be calculated with, or returns "":
// 1e999999999 is eleven bytes of text and a gigabyte of digits.
func numberFault(n json.Number) string {
	if len(n) > maxNumber {
		return fmt.Sprintf("is a number of %d characters; at most %d are allowed", len(n), maxNumber)
	}
	f, err := n.Float64()
	if err != nil {
		return fmt.Sprintf("%s is beyond the range of numbers", textcut.Bytes(string(n), maxShown))
	}
	if f != 0 {
		return ""
	}
	if !isZero(n) {
		return fmt.Sprintf("%s is too close to zero", textcut.Bytes(string(n), maxShown))
	}
	if _, ok := new(big.Rat).SetString(string(n)); !ok {
		return fmt.Sprintf("%s has an exponent that is too large", textcut.Bytes(string(n), maxShown))
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
