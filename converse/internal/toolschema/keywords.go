// SPDX-License-Identifier: Apache-2.0

package toolschema

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// This file defines the keywords of JSON Schema (draft 2020-12, and the different forms
// of older drafts): which keywords contain schemas, and which values servers reject.

// The keywords that contain schemas: one schema, a list, or schemas by name.
var (
	holdsOne = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
		"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	holdsList  = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	holdsNamed = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// eachSchema calls f for each direct subschema of node, with its place: the keyword,
// followed by a slash and the index or name if there are several. The order is fixed.
func eachSchema(node map[string]any, f func(place string, sub any) error) error {
	for _, keyword := range holdsOne {
		if sub, ok := node[keyword]; ok {
			if list, ok := sub.([]any); ok { // items of old drafts; see repairItems
				for i, sub := range list {
					if err := f(keyword+"/"+strconv.Itoa(i), sub); err != nil {
						return err
					}
				}
				continue
			}
			if err := f(keyword, sub); err != nil {
				return err
			}
		}
	}
	for _, keyword := range holdsList {
		for i, sub := range listOf(node[keyword]) {
			if err := f(keyword+"/"+strconv.Itoa(i), sub); err != nil {
				return err
			}
		}
	}
	for _, keyword := range holdsNamed {
		named, _ := node[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if err := f(keyword+"/"+name, named[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace stores sub at a place that eachSchema returned.
func replace(node map[string]any, place string, sub any) {
	keyword, at, _ := strings.Cut(place, "/")
	switch holder := node[keyword].(type) {
	case []any:
		i, _ := strconv.Atoi(at)
		holder[i] = sub
	case map[string]any:
		if slices.Contains(holdsNamed, keyword) {
			holder[at] = sub
			return
		}
		node[keyword] = sub
	default:
		node[keyword] = sub
	}
}

// kinds are the types of JSON Schema.
var kinds = map[string]bool{
	"array": true, "boolean": true, "integer": true, "null": true, "number": true, "object": true, "string": true,
}

// repair returns a copy of node without the parts that servers reject. The copy is deep
// enough to replace its subschemas. It never accepts less than node.
func repair(node map[string]any) map[string]any {
	out := maps.Clone(node)
	for _, keyword := range []string{"$schema", "$id", "$anchor", "$comment", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor"} {
		delete(out, keyword)
	}
	if _, ok := out["$ref"].(string); !ok {
		delete(out, "$ref")
	}
	repairItems(out)
	repairDependencies(out)
	for _, keyword := range holdsList {
		list, ok := out[keyword].([]any)
		if out[keyword] = slices.Clone(list); !ok || len(list) == 0 {
			delete(out, keyword)
		}
	}
	for _, keyword := range holdsNamed {
		named, ok := out[keyword].(map[string]any)
		if out[keyword] = maps.Clone(named); !ok {
			delete(out, keyword)
		}
	}
	for _, keyword := range holdsOne {
		if value, ok := out[keyword]; ok && value == nil {
			delete(out, keyword)
		}
	}
	repairValues(out)
	return out
}

// repairValues corrects the values of keywords that contain no schemas.
func repairValues(out map[string]any) {
	if kind, ok := out["type"]; ok && !knownKinds(kind) {
		delete(out, "type")
	}
	if required, ok := out["required"]; ok {
		if names := stringsOf(required); names != nil {
			out["required"] = names
		} else {
			delete(out, "required")
		}
	}
	if list, ok := out["enum"].([]any); !ok || len(list) == 0 {
		delete(out, "enum")
	}
	for exclusive, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if on, ok := out[exclusive].(bool); ok { // the form of draft-04
			delete(out, exclusive)
			if value, ok := out[limit].(json.Number); ok && on {
				out[exclusive] = value
				delete(out, limit)
			}
		}
	}
}

// repairItems converts tuples of older drafts to the current form. Arrays without items
// get their implicit meaning: any items.
func repairItems(out map[string]any) {
	if tuple, ok := out["items"].([]any); ok {
		delete(out, "items")
		if len(tuple) > 0 {
			out["prefixItems"] = tuple
		}
		if rest, ok := out["additionalItems"]; ok {
			out["items"] = rest
		}
	}
	delete(out, "additionalItems")
	if _, ok := out["items"]; !ok && (out["type"] == "array" || slices.Contains(listOf(out["type"]), any("array"))) {
		out["items"] = map[string]any{}
	}
}

// repairDependencies converts dependencies of older drafts to the current form.
func repairDependencies(out map[string]any) {
	old, ok := out["dependencies"].(map[string]any)
	delete(out, "dependencies")
	if !ok {
		return
	}
	required, _ := out["dependentRequired"].(map[string]any)
	schemas, _ := out["dependentSchemas"].(map[string]any)
	required, schemas = maps.Clone(required), maps.Clone(schemas)
	for name, needs := range old {
		if names := stringsOf(needs); names != nil {
			required = with(required, name, names)
		} else {
			schemas = with(schemas, name, needs)
		}
	}
	if required != nil {
		out["dependentRequired"] = required
	}
	if schemas != nil {
		out["dependentSchemas"] = schemas
	}
}

// with sets a member of m and returns m, which is created if it is nil.
func with(m map[string]any, name string, value any) map[string]any {
	if m == nil {
		m = map[string]any{}
	}
	m[name] = value
	return m
}

// weight returns the approximate size of a node as JSON, in bytes, without its
// subschemas.
func weight(node map[string]any) int {
	total := 2
	for keyword, value := range node {
		total += len(keyword) + 4
		if !slices.Contains(holdsOne, keyword) && !slices.Contains(holdsList, keyword) && !slices.Contains(holdsNamed, keyword) {
			total += bytesOf(value)
		}
	}
	return total
}

func bytesOf(value any) int {
	total := 4
	switch value := value.(type) {
	case string:
		total += len(value)
	case json.Number:
		total += len(value)
	case []any:
		for _, element := range value {
			total += bytesOf(element)
		}
	case map[string]any:
		for name, member := range value {
			total += len(name) + bytesOf(member)
		}
	}
	return total
}

// widen makes a node accept more if the subschemas of these keywords accept more. Some
// keywords accept less when their subschemas accept more.
func widen(node map[string]any, wide map[string]bool) {
	if wide["oneOf"] {
		if list, ok := node["anyOf"]; ok { // an existing anyOf moves into allOf
			node["allOf"] = append(slices.Clone(listOf(node["allOf"])), map[string]any{"anyOf": list})
		}
		node["anyOf"] = node["oneOf"]
		delete(node, "oneOf")
	}
	if wide["not"] {
		delete(node, "not")
	}
	if wide["if"] {
		for _, keyword := range []string{"if", "then", "else"} {
			delete(node, keyword)
		}
	}
	if wide["contains"] {
		delete(node, "maxContains")
	}
	// These depend on which subschemas accepted a member or an element.
	delete(node, "unevaluatedProperties")
	delete(node, "unevaluatedItems")
}

// knownKinds reports whether the value of a type keyword is valid.
func knownKinds(value any) bool {
	if list, ok := value.([]any); ok {
		for i, kind := range list {
			text, ok := kind.(string)
			if !ok || !kinds[text] || slices.Contains(list[:i], kind) {
				return false
			}
		}
		return len(list) > 0
	}
	text, ok := value.(string)
	return ok && kinds[text]
}

// point resolves a JSON pointer (RFC 6901) in its URI form.
func point(value any, pointer string) (any, bool) {
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	for pointer != "" {
		var token string
		token, pointer, _ = strings.Cut(pointer[1:], "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch holder := value.(type) {
		case map[string]any:
			next, ok := holder[token]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(holder) {
				return nil, false
			}
			value = holder[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// listOf returns value if it is a list, and nil otherwise.
func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// stringsOf returns the strings of a list without duplicates, and nil if value is not a
// list.
func stringsOf(value any) []any {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	names := []any{}
	for _, name := range list {
		if _, ok := name.(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kindOf returns the name of the JSON type of a value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}
