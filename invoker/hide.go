// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits for the schemas that apply to the arguments as a whole: they come from servers.
const (
	maxPlaces     = 1000 // number
	maxPlaceDepth = 64   // names and indexes in the path of one
)

// Takes reports whether the input schema has a property with that name, or may have it: the
// schema combines so many schemas that it cannot be searched.
func (d *Definition) Takes(argument string) bool {
	rest, ok := hide(d.InputSchema, func(name string) bool { return name == argument })
	return !ok || len(rest) != len(d.InputSchema)
}

// hide returns the input schema without its hidden properties. All other bytes
// stay as they are. It reports false if the schema combines too many schemas.
func hide(schema json.RawMessage, hidden func(string) bool) (_ json.RawMessage, ok bool) {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return schema, true
	}
	p := places{root: root, seen: map[string]bool{}}
	if p.add(nil); p.tooMany {
		return schema, false
	}
	return p.tree.hide(schema, hidden), true
}

// place is a schema that applies to the arguments as a whole, or contains one.
type place struct {
	applies bool
	inner   map[string]*place // by name or index
}

// at returns the place at a path.
func (p *place) at(path []string) *place {
	for _, name := range path {
		if p.inner == nil {
			p.inner = map[string]*place{}
		}
		if p.inner[name] == nil {
			p.inner[name] = &place{}
		}
		p = p.inner[name]
	}
	return p
}

// hide removes the hidden properties from the schemas of the place, whose text is given.
func (p *place) hide(text json.RawMessage, hidden func(string) bool) json.RawMessage {
	if len(p.inner) > 0 {
		var edited []byte
		end := 0
		parts, _ := partsOf(text)
		for _, part := range parts {
			if inner := p.inner[part.name]; inner != nil {
				edited = append(edited, text[end:part.valueStart]...)
				edited = append(edited, inner.hide(text[part.valueStart:part.to], hidden)...)
				end = part.to
			}
		}
		text = append(edited, text[end:]...)
	}
	if p.applies {
		text = hideHere(text, hidden)
	}
	return text
}

// hideHere removes the properties from one schema, but not from its subschemas.
func hideHere(schema json.RawMessage, hidden func(string) bool) json.RawMessage {
	before := len(schema)
	for _, keyword := range []string{"properties", "required", "dependentRequired", "dependencies"} {
		schema = edit(schema, []string{keyword}, func(text json.RawMessage) json.RawMessage { return without(text, hidden) })
	}
	if len(schema) == before {
		return schema
	}
	parts, _ := partsOf(schema)
	var kept [][]byte
	for _, p := range parts {
		// An empty list means nothing in JSON Schema and is invalid in draft 4.
		if p.name != "required" || string(schema[p.valueStart:p.to]) != "[]" {
			kept = append(kept, schema[p.from:p.to])
		}
	}
	if len(kept) == len(parts) {
		return schema
	}
	return rejoined(kept, true)
}

// places finds the schemas that apply to the arguments as a whole.
type places struct {
	root    any
	tree    place
	seen    map[string]bool // by their pointers
	tooMany bool
}

func (p *places) add(path []string) {
	if p.tooMany {
		return
	}
	schema, ok := lookup(p.root, path).(map[string]any)
	pointer := pointerOf(path)
	if !ok || p.seen[pointer] {
		return
	}
	if len(p.seen) == maxPlaces || len(path) > maxPlaceDepth {
		p.tooMany = true
		return
	}
	p.seen[pointer] = true
	p.tree.at(path).applies = true
	if ref, ok := schema["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		if pointer, err := url.PathUnescape(ref[1:]); err == nil {
			p.add(pathOf(pointer))
		}
	}
	for _, keyword := range []string{"then", "else"} {
		p.add(append(slices.Clone(path), keyword))
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		dependent, _ := schema[keyword].(map[string]any)
		for name := range dependent {
			p.add(append(slices.Clone(path), keyword, name))
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		forms, _ := schema[keyword].([]any)
		for i := range forms {
			p.add(append(slices.Clone(path), keyword, strconv.Itoa(i)))
		}
	}
}

// pathOf splits a JSON pointer (RFC 6901).
func pathOf(pointer string) []string {
	if pointer == "" {
		return nil
	}
	path := strings.Split(pointer[1:], "/")
	for i, name := range path {
		path[i] = pointerNames.Replace(name)
	}
	return path
}

// part is a member of an object or an item of an array: its name or index, and
// the position of its value in the text.
type part struct {
	name       string
	from, to   int // including the name
	valueStart int
}

// partsOf splits the text of an object or array into its direct parts.
func partsOf(text json.RawMessage) (parts []part, isObject bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	open, err := decoder.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil, false
	}
	isObject = open == json.Delim('{')
	for i := 0; decoder.More(); i++ {
		p := part{name: strconv.Itoa(i), from: -1}
		if isObject {
			before := int(decoder.InputOffset())
			name, err := decoder.Token()
			if err != nil {
				return nil, false
			}
			p.name, _ = name.(string)
			p.from = before + bytes.IndexByte(text[before:], '"')
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, false
		}
		p.to = int(decoder.InputOffset())
		p.valueStart = p.to - len(value)
		if !isObject {
			p.from = p.valueStart
		}
		parts = append(parts, p)
	}
	return parts, isObject
}

// edit replaces the value at path, if there is one.
func edit(text json.RawMessage, path []string, change func(json.RawMessage) json.RawMessage) json.RawMessage {
	if len(path) == 0 {
		return change(text)
	}
	parts, _ := partsOf(text)
	for _, p := range parts {
		if p.name == path[0] {
			changed := edit(text[p.valueStart:p.to], path[1:], change)
			return slices.Concat(text[:p.valueStart], changed, text[p.to:])
		}
	}
	return text
}

// without removes the hidden members of an object, or the hidden strings of an
// array, and also hidden strings in arrays that are members of the object.
func without(text json.RawMessage, hidden func(string) bool) json.RawMessage {
	parts, isObject := partsOf(text)
	var kept [][]byte
	changed := false
	for _, p := range parts {
		name := p.name
		if !isObject && json.Unmarshal(text[p.valueStart:p.to], &name) != nil {
			return text // not a list of names
		}
		if hidden(name) {
			changed = true
			continue
		}
		keep := text[p.from:p.to]
		if value := bytes.TrimSpace(text[p.valueStart:p.to]); isObject && value[0] == '[' { // dependentRequired
			rest := without(value, hidden)
			changed = changed || len(rest) != len(value)
			keep = slices.Concat(text[p.from:p.valueStart], rest)
		}
		kept = append(kept, keep)
	}
	if !changed {
		return text
	}
	return rejoined(kept, isObject)
}

// rejoined joins members or items to an object or array.
func rejoined(kept [][]byte, isObject bool) json.RawMessage {
	joined := bytes.Join(kept, []byte(","))
	if isObject {
		return slices.Concat([]byte("{"), joined, []byte("}"))
	}
	return slices.Concat([]byte("["), joined, []byte("]"))
}
