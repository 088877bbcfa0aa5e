// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"github.com/google/jsonschema-go/jsonschema"
)

// hasDefaults reports whether a schema contains a default.
func hasDefaults(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	for _, property := range s.Properties {
		if property.Default != nil || hasDefaults(property) {
			return true
		}
	}
	return hasDefaults(s.Items) || hasDefaults(s.AdditionalProperties)
}

// withDefaults returns value with defaults for the members that are missing.
// value itself is not changed.
func withDefaults(s *jsonschema.Schema, value any) any {
	if s == nil {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		full := make(map[string]any, len(value))
		for name, member := range value {
			inner := s.Properties[name]
			if inner == nil {
				inner = s.AdditionalProperties
			}
			full[name] = withDefaults(inner, member)
		}
		for name, property := range s.Properties {
			if _, given := full[name]; given || property.Default == nil {
				continue
			}
			member, _, _ := parse(property.Default) // valid, since it was checked with the tag
			full[name] = withDefaults(property, member)
		}
		return full
	case []any:
		full := make([]any, len(value))
		for i, item := range value {
			full[i] = withDefaults(s.Items, item)
		}
		return full
	}
	return value
}
