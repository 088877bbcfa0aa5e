// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"fmt"
	"regexp"
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
	if strict {
		if reason := checkKeywords(schema, path); reason != "" {
			return reason
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

// refusedInStrict are keywords, and formats are the values of format that are left, in a
// strict schema (Structured Outputs, Supported schemas;
// github.com/can1357/oh-my-pi/issues/920, github.com/cyanheads/git-mcp-server/issues/47).
var (
	refusedInStrict = strings.Fields("oneOf allOf not if then else dependentRequired dependentSchemas patternProperties propertyNames " +
		"unevaluatedProperties unevaluatedItems contains minContains maxContains uniqueItems minProperties maxProperties default prefixItems")
	formats = strings.Fields("date-time time date duration email hostname ipv4 ipv6 uuid")
)

// maxStrictDepth is how deep objects may be nested in a strict schema.
const maxStrictDepth = 10

// checkKeywords checks the keywords of a strict schema.
func checkKeywords(schema map[string]any, path []string) string {
	for _, keyword := range refusedInStrict {
		if _, there := schema[keyword]; there {
			return inContext(path, fmt.Sprintf("'%s' is not permitted.", keyword))
		}
	}
	if format, ok := schema["format"].(string); ok && !slices.Contains(formats, format) {
		return inContext(path, fmt.Sprintf("'%s' is not a valid format.", format))
	}
	typed := false
	for _, keyword := range []string{"type", "anyOf", "$ref", "enum", "const"} {
		_, there := schema[keyword]
		typed = typed || there
	}
	if !typed {
		return inContext(path, "schema must have a 'type' key.")
	}
	if depth := strings.Count(strings.Join(path, "/")+"/", "properties/"); depth > maxStrictDepth {
		return fmt.Sprintf("%d levels of nesting exceeds limit of %d.", depth, maxStrictDepth)
	}
	return ""
}

// lookaround matches patterns that OpenAI refuses in every schema, strict or not
// (github.com/vercel/ai/pull/21037, github.com/decolua/9router/issues/1556).
var lookaround = regexp.MustCompile(`\(\?<?[=!]`)

// findLookaround returns the place of a pattern that uses lookaround, or "".
func findLookaround(raw json.RawMessage) string {
	if absent(raw) || !lookaround.Match(raw) {
		return ""
	}
	var schema any
	if json.Unmarshal(raw, &schema) != nil {
		return ""
	}
	return lookaroundIn(schema, "$")
}

func lookaroundIn(value any, place string) string {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			if pattern, ok := value[name].(string); ok && name == "pattern" && lookaround.MatchString(pattern) {
				return place + ".pattern"
			}
			if found := lookaroundIn(value[name], place+"."+name); found != "" {
				return found
			}
		}
	case []any:
		for i, one := range value {
			if found := lookaroundIn(one, fmt.Sprintf("%s[%d]", place, i)); found != "" {
				return found
			}
		}
	}
	return ""
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
