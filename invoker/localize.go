// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var drafts = map[string]*jsonschema.Draft{
	"json-schema.org/schema":               jsonschema.Draft2020,
	"json-schema.org/draft/2020-12/schema": jsonschema.Draft2020,
	"json-schema.org/draft/2019-09/schema": jsonschema.Draft2019,
	"json-schema.org/draft-07/schema":      jsonschema.Draft7,
	"json-schema.org/draft-06/schema":      jsonschema.Draft6,
	"json-schema.org/draft-04/schema":      jsonschema.Draft4,
}

// draftsOf returns the drafts to try for a schema, the most likely first, and
// whether one of them must fit. According to MCP (2025-11-25, basic, JSON Schema
// usage), a schema that does not name its draft is of 2020-12; many that were
// written before that rule are older.
func draftsOf(schema json.RawMessage) (candidates []*jsonschema.Draft, sure bool) {
	var root map[string]json.RawMessage // a struct would take "$Schema" for "$schema"
	var name string
	guess := []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4}
	if json.Unmarshal(schema, &root) != nil || json.Unmarshal(root["$schema"], &name) != nil || name == "" {
		return guess, true
	}
	name = strings.TrimSuffix(name, "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://")
	if draft := drafts[name]; draft != nil {
		return []*jsonschema.Draft{draft}, true
	}
	return guess, false
}

// stepFormat is the format of every subschema after localize, so that the
// validator reports each visit. The original formats are dropped: by default they
// are annotations, not assertions (JSON Schema 2020-12, validation, section
// 7.2.1), and they are treated so in all drafts. Schemas of Go types are the
// exception: their formats move into an allOf.
const stepFormat = "consort-step"

// localize changes a schema in place to make it self-contained: references to
// other documents allow anything, dialects are removed, and each subschema counts
// its visits.
func localize(doc any, draft *jsonschema.Draft, assertFormats bool) {
	root, ok := doc.(map[string]any)
	if !ok {
		return
	}
	l := localizer{
		idKey:  "$id",
		assert: assertFormats,
		modern: draft == jsonschema.Draft2020 || draft == jsonschema.Draft2019,
		here:   map[string]bool{schemaURL: true},
	}
	if draft == jsonschema.Draft4 {
		l.idKey = "id"
	}
	base := &url.URL{Scheme: "consort", Host: "schema", Path: "/"} // schemaURL
	l.collect(root, base)
	l.rewrite(root, base)
}

type localizer struct {
	idKey  string          // the keyword that identifies a resource
	assert bool            // formats are assertions
	modern bool            // keywords next to $ref are valid: 2019-09 and later
	here   map[string]bool // the URLs of this document and its embedded resources
}

// collect records the URLs of all embedded resources.
func (l *localizer) collect(schema map[string]any, base *url.URL) {
	base = l.base(schema, base)
	l.here[base.String()] = true
	eachSubschema(schema, func(sub map[string]any) { l.collect(sub, base) })
}

// base returns the base URL for references in schema. An ID that is not a URL is
// removed.
func (l *localizer) base(schema map[string]any, outer *url.URL) *url.URL {
	id, ok := schema[l.idKey].(string)
	if !ok {
		return outer
	}
	u, err := outer.Parse(id)
	if err != nil {
		delete(schema, l.idKey)
		return outer
	}
	u.Fragment, u.RawFragment = "", ""
	return u
}

func (l *localizer) rewrite(schema map[string]any, base *url.URL) {
	base = l.base(schema, base)
	for _, keyword := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := schema[keyword].(string); !ok || l.isHere(ref, base) {
			continue
		}
		if !l.modern {
			clear(schema) // older drafts ignore keywords next to $ref
		}
		delete(schema, keyword)
	}
	if _, ok := schema["$schema"].(string); ok {
		delete(schema, "$schema")
	}
	eachSubschema(schema, func(sub map[string]any) { l.rewrite(sub, base) })
	if _, ok := formats[text(schema["format"])]; ok && l.assert {
		all, _ := schema["allOf"].([]any)
		schema["allOf"] = append(all, map[string]any{"format": schema["format"]})
	}
	schema["format"] = stepFormat
}

func (l *localizer) isHere(ref string, base *url.URL) bool {
	u, err := base.Parse(ref)
	if err != nil {
		return false
	}
	u.Fragment, u.RawFragment = "", ""
	return l.here[u.String()] || drafts[u.Host+u.Path] != nil
}

// eachSubschema calls visit for each object in schema that may be a schema,
// including values of unknown keywords, because a $ref can point there.
func eachSubschema(schema map[string]any, visit func(map[string]any)) {
	for keyword, value := range schema {
		switch keyword {
		case "enum", "const", "default", "examples", "example":
			continue // values, not schemas
		}
		switch value := value.(type) {
		case map[string]any:
			if !holdsSchemas(keyword) {
				visit(value)
				continue
			}
			for _, sub := range value {
				if sub, ok := sub.(map[string]any); ok {
					visit(sub)
				}
			}
		case []any:
			for _, sub := range value {
				if sub, ok := sub.(map[string]any); ok {
					visit(sub)
				}
			}
		}
	}
}

// holdsSchemas reports whether the value of a keyword is an object that is not a
// schema itself but has schemas as members.
func holdsSchemas(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
		"$vocabulary", "dependentRequired":
		return true
	}
	return false
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
