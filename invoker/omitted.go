// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// newLenientChecker compiles a schema so that a required property with a default
// may be omitted. It returns nil if the schema requires no such property. Schema
// generators, such as zod with .default(), emit both for one declaration, and
// their servers fill in omitted values. JSON Schema leaves the meaning of
// defaults to applications (2020-12, validation, section 9.2).
func newLenientChecker(schema json.RawMessage, assertFormats bool) *checker {
	if !bytes.Contains(schema, []byte(`"default"`)) || !bytes.Contains(schema, []byte(`equired"`)) {
		return nil
	}
	doc, _, faults := parse(schema)
	if len(faults) > 0 || !allowOmitted(doc) {
		return nil
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil
	}
	c, err := newChecker(text, assertFormats)
	if err != nil {
		return nil
	}
	return c
}

// maxOmitSteps is the maximum number of schemas visited within one schema.
const maxOmitSteps = 100_000

// allowOmitted removes properties with a default from all lists of required
// properties, in place. It reports whether there were any.
func allowOmitted(doc any) bool {
	root, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	o := omission{root: root, walked: map[uintptr]bool{}, changed: map[uintptr]bool{}}
	o.walk(root)
	if o.steps > maxOmitSteps || len(o.changed) == 0 {
		return false
	}
	o.walked = map[uintptr]bool{}
	o.joinForms(root)
	return true
}

// omission edits a schema for [allowOmitted].
type omission struct {
	root    map[string]any
	steps   int
	walked  map[uintptr]bool
	changed map[uintptr]bool // schemas that require fewer properties than before
}

func identity(schema map[string]any) uintptr { return reflect.ValueOf(schema).Pointer() }

// walk edits a schema and its subschemas, but not those in not and if: requiring
// less there would allow less.
func (o *omission) walk(schema map[string]any) {
	if o.walked[identity(schema)] {
		return
	}
	o.walked[identity(schema)] = true
	for _, keyword := range []string{"not", "if"} {
		if inner, ok := schema[keyword].(map[string]any); ok {
			o.walked[identity(inner)] = true
		}
	}
	applied := o.applied(schema)
	optional := map[string]bool{}
	for _, one := range applied {
		properties, _ := one["properties"].(map[string]any)
		for name, property := range properties {
			if o.hasDefault(property) {
				optional[name] = true
			}
		}
	}
	for _, one := range applied {
		if len(optional) > 0 && requireLess(one, optional) {
			o.changed[identity(one)] = true
		}
	}
	eachSubschema(schema, o.walk)
}

// applied returns a schema and all schemas that apply to the same value.
func (o *omission) applied(schema map[string]any) (found []map[string]any) {
	seen := map[uintptr]bool{}
	open := []any{schema}
	for len(open) > 0 && o.steps <= maxOmitSteps {
		one, ok := open[len(open)-1].(map[string]any)
		open = open[:len(open)-1]
		if !ok || seen[identity(one)] {
			continue
		}
		o.steps++
		seen[identity(one)] = true
		found = append(found, one)
		open = append(open, one["then"], one["else"], o.target(one))
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			forms, _ := one[keyword].([]any)
			open = append(open, forms...)
		}
		for _, keyword := range []string{"dependentSchemas", "dependencies"} {
			dependent, _ := one[keyword].(map[string]any)
			for _, inner := range dependent {
				open = append(open, inner)
			}
		}
	}
	return found
}

// target returns the schema that $ref points to within the document, or nil.
func (o *omission) target(schema map[string]any) any {
	ref, _ := schema["$ref"].(string)
	pointer, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || !strings.HasPrefix(ref, "#") || pointer != "" && pointer[0] != '/' {
		return nil
	}
	return lookup(o.root, pathOf(pointer))
}

// hasDefault reports whether the schema of a property has a default.
func (o *omission) hasDefault(property any) bool {
	schema, ok := property.(map[string]any)
	if !ok {
		return false
	}
	return slices.ContainsFunc(o.applied(schema), func(one map[string]any) bool {
		_, has := one["default"]
		return has
	})
}

// requireLess removes names from the required properties of one schema.
func requireLess(schema map[string]any, optional map[string]bool) (changed bool) {
	less := func(in map[string]any, keyword string) {
		names, ok := in[keyword].([]any)
		if !ok {
			return
		}
		left := slices.DeleteFunc(slices.Clone(names), func(name any) bool { return optional[text(name)] })
		switch {
		case len(left) == len(names):
			return
		case len(left) == 0:
			delete(in, keyword) // draft 4 requires at least one name
		default:
			in[keyword] = left
		}
		changed = true
	}
	less(schema, "required")
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		dependent, _ := schema[keyword].(map[string]any)
		for name := range dependent {
			less(dependent, name)
		}
	}
	return changed
}

// joinForms turns oneOf into anyOf if a form requires less than before: a value
// without the defaults may fit several forms.
func (o *omission) joinForms(schema map[string]any) {
	if o.walked[identity(schema)] {
		return
	}
	o.walked[identity(schema)] = true
	eachSubschema(schema, o.joinForms)
	forms, _ := schema["oneOf"].([]any)
	changed := slices.ContainsFunc(forms, func(form any) bool {
		one, ok := form.(map[string]any)
		return ok && slices.ContainsFunc(o.applied(one), func(s map[string]any) bool { return o.changed[identity(s)] })
	})
	if changed {
		all, _ := schema["allOf"].([]any)
		schema["allOf"] = append(slices.Clip(all), map[string]any{"anyOf": forms})
		delete(schema, "oneOf")
	}
}
