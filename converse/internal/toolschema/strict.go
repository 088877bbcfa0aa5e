// SPDX-License-Identifier: Apache-2.0

package toolschema

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/jsontext"
)

// strictKeywords are the keywords of schemas that OpenAI can enforce (Structured Outputs,
// Supported schemas). Others make it refuse a strict tool.
var strictKeywords = map[string]bool{
	"type": true, "properties": true, "required": true, "additionalProperties": true, "items": true, "enum": true,
	"const": true, "anyOf": true, "description": true, "title": true,
	"pattern": true, "multipleOf": true, "maximum": true, "exclusiveMaximum": true, "minimum": true, "exclusiveMinimum": true,
	"minItems": true, "maxItems": true,
}

// boundKeywords bound values. OpenAI's fine-tuned models refuse them.
var boundKeywords = []string{"pattern", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems"}

// Enforcement describes the schemas that a server can enforce for strict tools.
type Enforcement struct {
	Depth      int  // levels of nesting
	Properties int  // of a schema as a whole
	Values     int  // of all enumerations of a schema
	Unbounded  bool // without keywords that bound values
}

// The servers that enforce schemas (OpenAI, Structured Outputs, Supported schemas; Azure OpenAI,
// How to use structured outputs).
var (
	OpenAI = Enforcement{Depth: 10, Properties: 5000, Values: 1000}
	Azure  = Enforcement{Depth: 5, Properties: 100, Values: 500}
)

const (
	maxStrictNames = 120000 // characters of all names and enumerated values
	// An enumeration of more than manyValues strings may have maxValues characters.
	manyValues = 250
	maxValues  = 15000
)

// Can reports whether the arguments of a tool can be enforced as they are: each object
// is closed and requires all of its properties, and no keyword is used that cannot be
// enforced. Without enforcement the schema is only a hint for the model.
func (e Enforcement) Can(parameters []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(parameters))
	var root map[string]any
	if decoder.Decode(&root) != nil || root["type"] != "object" {
		return false
	}
	s := strictness{limits: e}
	return s.node(root, 0) && s.properties <= e.Properties && s.values <= e.Values && s.characters <= maxStrictNames
}

// strictness counts the parts of a schema.
type strictness struct {
	limits                         Enforcement
	properties, values, characters int
}

// choices counts the values of an enumeration, or of a constant.
func (s *strictness) choices(node map[string]any) bool {
	list, _ := node["enum"].([]any)
	if constant, ok := node["const"]; ok {
		list = append(slices.Clone(list), constant)
	}
	before := s.characters
	for _, value := range list {
		text, _ := value.(string)
		s.characters += utf8.RuneCountInString(text)
	}
	s.values += len(list)
	return len(list) <= manyValues || s.characters-before <= maxValues
}

func (s *strictness) node(value any, depth int) bool {
	node, ok := value.(map[string]any)
	if !ok || depth > s.limits.Depth || !s.choices(node) {
		return false
	}
	for keyword := range node {
		if !strictKeywords[keyword] || s.limits.Unbounded && slices.Contains(boundKeywords, keyword) {
			return false
		}
	}
	if branches, ok := node["anyOf"].([]any); ok {
		for keyword := range node {
			if keyword != "anyOf" && keyword != "description" && keyword != "title" {
				return false // what stands beside it would have to hold too
			}
		}
		for _, branch := range branches {
			if !s.node(branch, depth+1) {
				return false
			}
		}
		return true
	}
	if pattern, ok := node["pattern"].(string); ok && lookaround.MatchString(pattern) {
		return false
	}
	if items, ok := node["items"]; ok && !s.node(items, depth+1) {
		return false
	}
	switch kind := node["type"].(type) {
	case string:
		return kind != "array" && kind != "object" || kind == "array" && node["items"] != nil || kind == "object" && s.object(node, depth)
	case []any:
		return len(kind) > 0 && !slices.Contains(kind, any("object")) && !slices.Contains(kind, any("array"))
	}
	return false
}

// object reports whether an object is closed and requires all of its properties.
func (s *strictness) object(node map[string]any, depth int) bool {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	if node["additionalProperties"] != false || len(required) != len(properties) {
		return false
	}
	for _, name := range required {
		text, _ := name.(string)
		if _, known := properties[text]; !known {
			return false
		}
	}
	for name, property := range properties {
		s.properties++
		s.characters += utf8.RuneCountInString(name)
		if !s.node(property, depth+1) {
			return false
		}
	}
	return true
}

// lookaround matches patterns that OpenAI refuses, and with them the whole request.
var lookaround = regexp.MustCompile(`\(\?<?[=!]`)

// WithoutLookaround returns a schema without the patterns that use lookaround. The schema
// of the tool still checks the arguments.
func WithoutLookaround(schema []byte) []byte {
	if !lookaround.Match(schema) {
		return schema
	}
	value, err := decode(schema)
	if err != nil {
		return schema
	}
	removePatterns(value)
	text, err := jsontext.Encode(value)
	if err != nil {
		return schema
	}
	return text
}

func removePatterns(value any) {
	switch value := value.(type) {
	case map[string]any:
		if pattern, ok := value["pattern"].(string); ok && lookaround.MatchString(pattern) {
			delete(value, "pattern")
		}
		for _, member := range value {
			removePatterns(member)
		}
	case []any:
		for _, member := range value {
			removePatterns(member)
		}
	}
}
