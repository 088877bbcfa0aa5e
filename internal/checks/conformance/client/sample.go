// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
)

// The properties that a sample includes.
const (
	optional = true  // all of them
	required = false // only required ones without a default
)

// schema holds the parts of a JSON Schema that sample uses.
type schema struct {
	Type       any
	Const      any
	Enum       []any
	Default    any
	Minimum    float64
	Properties map[string]json.RawMessage
	Required   []string
	Items      json.RawMessage
	AnyOf      []json.RawMessage
	OneOf      []json.RawMessage
}

// sample makes up an object that the schema is likely to allow.
func sample(text json.RawMessage, all bool) json.RawMessage {
	value := object(read(text), all, 0)
	out, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`{}`) // cannot happen: it came from JSON
	}
	return out
}

// read parses a schema. It treats a schema that it cannot parse as allowing anything.
func read(text json.RawMessage) schema {
	var s schema
	_ = json.Unmarshal(text, &s)
	return s
}

func object(s schema, all bool, depth int) map[string]any {
	const deepest = 5
	value := make(map[string]any)
	if depth == deepest {
		return value
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := read(s.Properties[name])
		needed := slices.Contains(s.Required, name)
		if all && depth == 0 || needed && property.Default == nil {
			value[name] = valueOf(property, all, depth+1)
		}
	}
	return value
}

func valueOf(s schema, all bool, depth int) any {
	switch {
	case s.Default != nil:
		return s.Default
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == nil && len(s.AnyOf) > 0:
		return valueOf(read(s.AnyOf[0]), all, depth)
	case s.Type == nil && len(s.OneOf) > 0:
		return valueOf(read(s.OneOf[0]), all, depth)
	}
	kind := s.Type
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "object":
		return object(s, all, depth)
	case "array":
		return []any{}
	case "number", "integer":
		return max(1, s.Minimum)
	case "boolean":
		return true
	case "null":
		return nil
	}
	return "text"
}
