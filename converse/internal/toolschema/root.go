// SPDX-License-Identifier: Apache-2.0

package toolschema

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/consort-go/consort/internal/jsontext"
)

// LongNote replaces the conditions of a schema that are too long.
const LongNote = "The arguments must meet further conditions, which are too long to list here."

// This file converts the root of a schema to an object without composition, as the API
// requires. References at the root are followed, allOf is merged, and anyOf and oneOf
// become one object with the members of all branches. Conditions that an object cannot
// express are stated in words.

// maxNote limits the note with these conditions, in bytes.
const maxNote = 4 << 10

// maxMerged limits the number of schemas that are merged into one root.
const maxMerged = 1000

// flat is a root without composition.
type flat struct {
	schema map[string]any
	// unsaid are the keywords that were removed from the schema.
	unsaid []map[string]any
}

// note states the removed conditions in a sentence.
func (f *flat) note() string {
	var conditions []any
	for _, condition := range f.unsaid {
		conditions = append(conditions, condition)
	}
	if len(conditions) == 0 {
		return ""
	}
	var value any = map[string]any{"allOf": conditions}
	if len(conditions) == 1 {
		value = conditions[0]
	}
	text, err := jsontext.Encode(value)
	if err != nil || len(text) > maxNote {
		return LongNote
	}
	return "The arguments as a whole must also match this JSON Schema: " + string(text)
}

// errNoObject means that a schema accepts no objects.
var errNoObject = errors.New("its arguments are not an object")

// flatten converts the root, or a branch of it, to one object.
func (a *adapter) flatten(node map[string]any, depth int) (*flat, error) {
	if a.merged++; depth > 16 || a.merged > maxMerged {
		return nil, fmt.Errorf("the root of its input schema refers to itself, or is composed 16 deep or of %d schemas", maxMerged)
	}
	if kind, ok := node["type"]; ok && knownKinds(kind) && kind != "object" && !slices.Contains(listOf(kind), any("object")) {
		text, _ := jsontext.Encode(kind)
		return nil, fmt.Errorf("%w: the root of its input schema has the type %s", errNoObject, text)
	}
	out := &flat{schema: maps.Clone(node)}
	if out.schema == nil {
		out.schema = map[string]any{}
	}
	if !composed(node) {
		return out, nil
	}
	if err := a.flattenRef(out, depth); err != nil {
		return nil, err
	}
	out.take("not", "enum", "const", "if", "then", "else")
	branches := listOf(out.schema["allOf"])
	delete(out.schema, "allOf")
	for _, branch := range branches {
		if err := a.join(out, branch, depth); err != nil {
			return nil, err
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches := listOf(out.schema[keyword]); len(branches) > 0 {
			either, err := a.either(branches, depth)
			if err != nil {
				return nil, err
			}
			out.take(keyword)
			out.merge(either)
		}
		delete(out.schema, keyword)
	}
	delete(out.schema, "unevaluatedProperties") // it depended on the branches
	return out, nil
}

// flattenRef replaces a reference at the root with its target.
func (a *adapter) flattenRef(f *flat, depth int) error {
	ref, ok := f.schema["$ref"].(string)
	delete(f.schema, "$ref")
	if !ok {
		return nil
	}
	if a.legacy { // keywords next to a reference have no effect
		maps.DeleteFunc(f.schema, func(name string, _ any) bool {
			return !annotations[name] && name != "$defs" && name != "definitions"
		})
	}
	target, err := a.find(a.local(ref))
	if err != nil {
		return err
	}
	return a.join(f, target, depth)
}

// composed reports whether a root has keywords that compose schemas.
func composed(root map[string]any) bool {
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"} {
		if _, ok := root[keyword]; ok {
			return true
		}
	}
	return false
}

// take moves keywords from the schema to unsaid.
func (f *flat) take(keywords ...string) {
	taken := map[string]any{}
	for _, keyword := range keywords {
		if value, ok := f.schema[keyword]; ok {
			taken[keyword] = value
			delete(f.schema, keyword)
		}
	}
	if len(taken) > 0 {
		f.unsaid = append(f.unsaid, taken)
	}
}

// join adds the conditions of another schema to f.
func (a *adapter) join(f *flat, schema any, depth int) error {
	node, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return errNoObject
		}
		return nil
	}
	more, err := a.flatten(node, depth+1)
	if err != nil {
		return err
	}
	f.unsaid = append(f.unsaid, more.unsaid...)
	f.merge(more.schema)
	return nil
}

// merge adds the keywords of an object schema to f, so that both must hold.
func (f *flat) merge(more map[string]any) {
	for _, keyword := range slices.Sorted(maps.Keys(more)) {
		theirs := more[keyword]
		ours, both := f.schema[keyword]
		switch {
		case keyword == "$defs" || keyword == "definitions" || keyword == "type" || both && annotations[keyword]:
		case !both || reflect.DeepEqual(ours, theirs):
			f.schema[keyword] = theirs
		case keyword == "properties" || keyword == "patternProperties":
			f.schema[keyword] = mergeNamed(ours, theirs)
		case keyword == "required":
			f.schema[keyword] = append(slices.Clone(stringsOf(ours)), stringsOf(theirs)...)
		case keyword == "additionalProperties" || keyword == "propertyNames":
			f.schema[keyword] = allOf(ours, theirs)
		default:
			f.unsaid = append(f.unsaid, map[string]any{keyword: theirs})
		}
	}
}

// mergeNamed returns the schemas of both maps. If a name is in both, both schemas apply.
func mergeNamed(a, b any) any {
	ours, ok := a.(map[string]any)
	theirs, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		if ok {
			return a
		}
		return b
	}
	out := maps.Clone(ours)
	for name, schema := range theirs {
		if mine, ok := out[name]; ok {
			schema = allOf(mine, schema)
		}
		out[name] = schema
	}
	return out
}

// allOf returns a schema that requires both.
func allOf(a, b any) any {
	switch {
	case a == false || b == true || reflect.DeepEqual(a, b):
		return a
	case b == false || a == true:
		return b
	}
	return map[string]any{"allOf": []any{a, b}}
}

// either returns one object schema that accepts everything that any of the branches
// accepts.
func (a *adapter) either(branches []any, depth int) (map[string]any, error) {
	var objects []map[string]any
	var why error
	for _, branch := range branches {
		one := &flat{schema: map[string]any{}}
		if err := a.join(one, branch, depth); errors.Is(err, errNoObject) {
			why = err
			continue // no arguments can match it
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, one.schema)
	}
	if len(objects) == 0 {
		return nil, why
	}
	if len(objects) == 1 {
		return objects[0], nil
	}
	return unite(objects), nil
}

// unite returns the members of all objects. A member is required if all objects require
// it.
func unite(objects []map[string]any) map[string]any {
	properties := map[string]any{}
	required := stringsOf(objects[0]["required"])
	var rest []any // schemas of the objects for other members
	closed := true
	for _, object := range objects {
		for _, name := range slices.Sorted(maps.Keys(named(object))) {
			if _, done := properties[name]; !done {
				properties[name] = anyOf(alternatives(objects, name))
			}
		}
		names := stringsOf(object["required"])
		required = slices.DeleteFunc(required, func(name any) bool { return !slices.Contains(names, name) })
		other := additional(object)
		closed = closed && other == false
		rest = append(rest, other)
	}
	out := map[string]any{"properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	if closed {
		out["additionalProperties"] = false
	} else if !slices.Contains(rest, any(true)) {
		out["additionalProperties"] = anyOf(rest)
	}
	return out
}

// alternatives returns the schemas that the objects have for a member.
func alternatives(objects []map[string]any, name string) []any {
	var out []any
	for _, object := range objects {
		schema, ok := named(object)[name]
		if !ok {
			schema = additional(object)
		}
		if schema != false {
			out = append(out, schema)
		}
	}
	return out
}

// named returns the properties of an object schema. Other constraints on them can be
// ignored here, because they only narrow.
func named(object map[string]any) map[string]any {
	properties, _ := object["properties"].(map[string]any)
	return properties
}

// additional returns the schema for members that an object schema does not name; true if
// they can be anything.
func additional(object map[string]any) any {
	if _, patterns := object["patternProperties"]; patterns {
		return true
	}
	if schema, ok := object["additionalProperties"]; ok && schema != nil {
		return schema
	}
	return true
}

// anyOf returns a schema that accepts everything that any schema of the list accepts. A
// schema that accepts everything comes last, so that the others still show the usual
// form.
func anyOf(list []any) any {
	var some []any
	all := false
	for _, schema := range list {
		switch {
		case schema == true:
			all = true
		case schema == false:
		case !slices.ContainsFunc(some, func(other any) bool { return reflect.DeepEqual(other, schema) }):
			some = append(some, schema)
		}
	}
	if all {
		some = append(some, map[string]any{})
	}
	if len(some) == 1 {
		return some[0]
	}
	if len(some) == 0 {
		return false
	}
	return map[string]any{"anyOf": some}
}
