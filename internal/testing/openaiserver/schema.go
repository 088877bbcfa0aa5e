// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// at formats a location in the request.
func at(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// checkParameters returns the reason why OpenAI would refuse a schema, or "". strict adds
// the rules of structured outputs: every object closed, every property required.
func checkParameters(raw json.RawMessage, strict bool) string {
	if absent(raw) {
		return ""
	}
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return "schema must be a JSON object."
	}
	if root["type"] != "object" {
		return fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: %s'.`, compact(root["type"]))
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if _, there := root[keyword]; there {
			return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
		}
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		return "In context=(), object schema missing properties."
	}
	return checkSchema(root, nil, strict)
}

// checkSchema checks a schema and its subschemas.
func checkSchema(schema map[string]any, path []string, strict bool) string {
	if hasType(schema, "array") {
		if _, ok := schema["items"]; !ok {
			return inContext(path, "array schema missing items.")
		}
	}
	if strict && hasType(schema, "object") {
		if reason := checkStrict(schema, path); reason != "" {
			return reason
		}
	}
	for _, keyword := range []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"} {
		members, _ := schema[keyword].(map[string]any)
		for _, name := range sortedKeys(members) {
			if reason := checkSub(members[name], append(path, keyword, name), strict); reason != "" {
				return reason
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"} {
		if reason := checkSub(schema[keyword], append(path, keyword), strict); reason != "" {
			return reason
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		members, _ := schema[keyword].([]any)
		for i, member := range members {
			if reason := checkSub(member, append(path, keyword, fmt.Sprint(i)), strict); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// checkSub checks a value at a position where a schema is allowed.
func checkSub(value any, path []string, strict bool) string {
	schema, ok := value.(map[string]any)
	if !ok {
		return "" // true, false, absent, or an old-style list of items
	}
	return checkSchema(schema, path, strict)
}

func checkStrict(schema map[string]any, path []string) string {
	if schema["additionalProperties"] != false {
		return inContext(path, "'additionalProperties' is required to be supplied and to be false.")
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range sortedKeys(properties) {
		if !slices.Contains(required, any(name)) {
			return inContext(path, fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", name))
		}
	}
	return ""
}

// hasType reports whether the schema's type is, or includes, name.
func hasType(schema map[string]any, name string) bool {
	switch t := schema["type"].(type) {
	case string:
		return t == name
	case []any:
		return slices.Contains(t, any(name))
	default:
		return false
	}
}

// inContext formats the location as OpenAI does, like a Python tuple.
func inContext(path []string, reason string) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = "'" + p + "'"
	}
	return "In context=(" + strings.Join(quoted, ", ") + "), " + reason
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// compact formats a value as JSON, for a message.
func compact(v any) string {
	if v == nil {
		return `"None"`
	}
	text, _ := json.Marshal(v) // it came from JSON
	return string(text)
}
