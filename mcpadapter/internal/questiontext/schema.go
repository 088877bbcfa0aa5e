// SPDX-License-Identifier: Apache-2.0

package questiontext

import (
	"encoding/json"
	"strings"
)

// unusable replaces the schema of a form that the SDK cannot check: it refuses the question.
var unusable = json.RawMessage(`"a schema with references, or null as an alternative"`)

// isUsable reports whether the SDK can check the schema of a form, and an answer against it. It
// panics at an alternative that is null, and its stack overflows at a reference that leads back to
// itself. Forms have neither (MCP 2025-11-25, client/elicitation § Requested Schema).
func isUsable(schema json.RawMessage) bool {
	var decoded any
	return json.Unmarshal(schema, &decoded) != nil || isSimple(decoded)
}

func isSimple(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if isKeyword(name, "$ref", "$dynamicRef", "$recursiveRef") || isKeyword(name, "oneOf", "anyOf") && hasNull(inner) || !isSimple(inner) {
				return false
			}
		}
	case []any:
		for _, inner := range value {
			if !isSimple(inner) {
				return false
			}
		}
	}
	return true
}

// isKeyword compares as encoding/json does, which decodes the schema for the SDK.
func isKeyword(name string, keywords ...string) bool {
	for _, keyword := range keywords {
		if strings.EqualFold(name, keyword) {
			return true
		}
	}
	return false
}

func hasNull(list any) bool {
	elements, _ := list.([]any)
	for _, element := range elements {
		if element == nil {
			return true
		}
	}
	return false
}
