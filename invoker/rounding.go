// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
)

// rounded returns value with its numbers rounded as a Go value of type t will
// hold them, and whether one of them changed: 0.99999999999999999999 is less than
// 1, but the float64 made from it is not. value itself is not changed.
func (s *shape) rounded(t reflect.Type, value any) (any, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if implements[json.Unmarshaler](t) || implements[encoding.TextUnmarshaler](t) {
		return value, false
	}
	changed := false
	inner := func(t reflect.Type, value any) any {
		held, other := s.rounded(t, value)
		changed = changed || other
		return held
	}
	switch value := value.(type) {
	case json.Number:
		return roundedNumber(t, value)
	case map[string]any:
		held := make(map[string]any, len(value))
		for name, member := range value {
			held[name] = inner(s.memberType(t, name), member)
		}
		return held, changed
	case []any:
		items := t
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			items = t.Elem()
		}
		held := make([]any, len(value))
		for i, item := range value {
			held[i] = inner(items, item)
		}
		return held, changed
	}
	return value, false
}

// memberType returns the type that a member of an object is decoded into, or t
// itself if that is unknown, for example for an interface.
func (s *shape) memberType(t reflect.Type, name string) reflect.Type {
	if field, ok := s.fields[t][name]; ok {
		return field
	}
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	return t
}

func roundedNumber(t reflect.Type, n json.Number) (json.Number, bool) {
	bits := 64
	switch t.Kind() {
	case reflect.Float32:
		bits = 32
	case reflect.Float64, reflect.Interface:
	default:
		return n, false
	}
	f, err := strconv.ParseFloat(string(n), bits)
	if err != nil {
		return n, false // decoding will report it
	}
	held := strconv.FormatFloat(f, 'g', -1, bits)
	exact, _ := new(big.Rat).SetString(string(n))
	rounded, _ := new(big.Rat).SetString(held)
	if exact == nil || rounded == nil || exact.Cmp(rounded) == 0 {
		return n, false
	}
	return json.Number(held), true
}
