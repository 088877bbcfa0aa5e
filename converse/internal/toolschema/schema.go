// SPDX-License-Identifier: Apache-2.0

// Package toolschema converts the input schemas of tools to the form that models' APIs
// accept: an object at the root without a composition, references resolved or inlined, and
// within a limit of size.
package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
)

// The limits of a schema that is sent to a model, which reads all of it in every
// exchange.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
)

var errSchemaTooLarge = fmt.Errorf("its input schema has more than %d KiB with its references written out", maxSchemaBytes>>10)

// adapter converts one schema to a form that the API accepts. The result always accepts
// the arguments that the tool's own schema accepts. If the exact meaning cannot be kept,
// the schema is widened and the condition is stated in words.
type adapter struct {
	root    map[string]any // the tool's schema; never modified
	id      string         // URI of the root, without a fragment; may be empty
	anchors map[string]any
	legacy  bool     // a draft in which keywords next to $ref are ignored (up to draft-07)
	inline  bool     // inline references
	open    []string // references that are being inlined
	widened int      // how often a schema was replaced by a wider one
	left    int      // remaining output in bytes, approximately
	merged  int      // number of schemas merged into the root
}

// Adapt returns the schema in a form that the API accepts, in canonical form, and a
// sentence for the tool's description with the conditions that the schema cannot express.
// The error is the reason why no such form exists. It is written to follow the words "set
// aside:".
func Adapt(schema json.RawMessage, inline bool) (parameters []byte, note string, err error) {
	if len(schema) == 0 {
		return []byte(`{"properties":{},"type":"object"}`), "", nil
	}
	if len(schema) > maxSchemaBytes {
		return nil, "", errSchemaTooLarge
	}
	value, err := decode(schema)
	if err != nil {
		return nil, "", fmt.Errorf("its input schema is not JSON: %w", err)
	}
	a := &adapter{anchors: map[string]any{}, left: maxSchemaBytes}
	switch value := value.(type) {
	case map[string]any:
		a.root = value
	case bool:
		if !value {
			return nil, "", errors.New("its input schema is false, which no arguments satisfy")
		}
	case nil:
	default:
		return nil, "", fmt.Errorf("its input schema is a JSON %s, not an object", kindOf(value))
	}
	plain, err := a.survey()
	if err != nil {
		return nil, "", err
	}
	a.inline = inline || !plain
	parameters, note, err = a.run()
	if errors.Is(err, errSchemaTooLarge) && a.inline && plain {
		a.inline, a.left, a.merged = false, maxSchemaBytes, 0 // better a reference than no tool
		parameters, note, err = a.run()
	}
	return parameters, note, err
}

// run adapts the schema with the current settings.
func (a *adapter) run() ([]byte, string, error) {
	flat, err := a.flatten(a.root, 0)
	if err != nil {
		return nil, "", err
	}
	if a.inline {
		delete(flat.schema, "$defs")
		delete(flat.schema, "definitions")
	}
	adapted, err := a.adapt(flat.schema, 0)
	if err != nil {
		return nil, "", err
	}
	object := adapted.(map[string]any)
	object["type"] = "object"
	if _, ok := object["properties"].(map[string]any); !ok {
		object["properties"] = map[string]any{}
	}
	text, err := jsontext.Encode(object)
	if err == nil && len(text) > maxSchemaBytes {
		err = errSchemaTooLarge
	}
	if err != nil {
		return nil, "", err
	}
	return text, flat.note(), nil
}

// survey walks through the schema once and reports whether servers can follow all of its
// references: they must point to the root or to a definition.
func (a *adapter) survey() (plain bool, err error) {
	draft, _ := a.root["$schema"].(string)
	for _, old := range []string{"draft-03", "draft-04", "draft-06", "draft-07"} {
		a.legacy = a.legacy || strings.Contains(draft, old)
	}
	id, _ := a.root["$id"].(string)
	a.id, _, _ = strings.Cut(id, "#")
	plain = true
	var nested, refs bool
	var look func(v any, depth int) error
	look = func(v any, depth int) error {
		node, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		if depth > maxSchemaDepth {
			return fmt.Errorf("its input schema is nested more than %d deep", maxSchemaDepth)
		}
		if ref, ok := node["$ref"].(string); ok {
			refs = true
			local := a.local(ref)
			// The converted root can differ from the target of the reference.
			whole := local == "#" && a.root["type"] == "object" && !composed(a.root)
			plain = plain && (whole || strings.HasPrefix(local, "#/$defs/") || strings.HasPrefix(local, "#/definitions/"))
		}
		if anchor, ok := node["$anchor"].(string); ok {
			a.anchors[anchor] = node
		}
		if id, ok := node["$id"].(string); ok && depth > 0 && !strings.HasPrefix(id, "#") {
			nested = true
		}
		for _, dynamic := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, ok := node[dynamic]; ok {
				return fmt.Errorf("its input schema uses %s, which the servers of models do not support", dynamic)
			}
		}
		return eachSchema(node, func(_ string, sub any) error { return look(sub, depth+1) })
	}
	if err := look(a.root, 0); err != nil {
		return false, err
	}
	if nested && refs {
		return false, errors.New("its input schema contains a schema with its own $id, which changes the meaning of references")
	}
	return plain, nil
}

// adapt returns a copy of a schema and its subschemas in a form that the API accepts.
func (a *adapter) adapt(v any, depth int) (any, error) {
	if depth > 2*maxSchemaDepth {
		return nil, fmt.Errorf("its input schema is nested more than %d deep", maxSchemaDepth)
	}
	node, ok := v.(map[string]any)
	if a.left -= weight(node); a.left < 0 {
		return nil, errSchemaTooLarge
	}
	if !ok {
		if v == false {
			return map[string]any{"not": map[string]any{}}, nil
		}
		return map[string]any{}, nil // true, or not a schema
	}
	if ref, ok := node["$ref"].(string); ok {
		return a.reference(node, ref, depth)
	}
	return a.node(node, depth)
}

// node adapts a schema without a reference, or the keywords next to one.
func (a *adapter) node(node map[string]any, depth int) (map[string]any, error) {
	node = repair(node)
	wide := map[string]bool{} // keywords whose subschemas were widened
	err := eachSchema(node, func(place string, sub any) error {
		keyword, _, _ := strings.Cut(place, "/")
		if _, ok := sub.(bool); ok && booleans[keyword] {
			return nil
		}
		before := a.widened
		adapted, err := a.adapt(sub, depth+1)
		if err == nil {
			replace(node, place, adapted)
		}
		if a.widened > before {
			wide[keyword] = true
		}
		return err
	})
	if len(wide) > 0 {
		widen(node, wide)
	}
	return node, err
}

// booleans are the keywords whose value may stay a boolean.
var booleans = map[string]bool{"additionalProperties": true, "unevaluatedProperties": true, "unevaluatedItems": true}

// reference adapts a schema with a $ref.
func (a *adapter) reference(node map[string]any, ref string, depth int) (any, error) {
	local := a.local(ref)
	target, err := a.find(local)
	if err != nil {
		return nil, err
	}
	beside := map[string]any{}
	for name, value := range node {
		if name != "$ref" && (!a.legacy || annotations[name]) {
			beside[name] = value
		}
	}
	siblings, err := a.node(beside, depth)
	if err != nil {
		return nil, err
	}
	if !a.inline {
		siblings["$ref"] = local
		return siblings, nil
	}
	written, err := a.writeOut(local, target, depth)
	if err != nil {
		return nil, err
	}
	return both(written, siblings), nil
}

// writeOut adapts the target of a reference. A reference inside its own target becomes a
// schema that accepts everything that the target could.
func (a *adapter) writeOut(local string, target any, depth int) (map[string]any, error) {
	if slices.Contains(a.open, local) {
		a.widened++
		again := map[string]any{"description": "The same again as " + name(local) + ", which this is inside of."}
		if object, ok := target.(map[string]any); ok {
			if kind, ok := object["type"].(string); ok && kinds[kind] {
				again["type"] = kind
			}
		}
		return repair(again), nil
	}
	a.open = append(a.open, local)
	adapted, err := a.adapt(target, depth+1)
	a.open = a.open[:len(a.open)-1]
	if err != nil {
		return nil, err
	}
	written := adapted.(map[string]any)
	delete(written, "$defs")
	delete(written, "definitions")
	return written, nil
}

// both returns a schema that requires a and b. If b has only annotations, they replace
// those of a.
func both(a, b map[string]any) map[string]any {
	constrains := false
	for name := range b {
		constrains = constrains || !annotations[name]
	}
	if constrains {
		b["allOf"] = append([]any{a}, listOf(b["allOf"])...)
		return b
	}
	maps.Copy(a, b)
	return a
}

// annotations are the keywords that describe but do not constrain.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true,
	"deprecated": true, "readOnly": true, "writeOnly": true,
}

// local returns a reference relative to the URI of the root.
func (a *adapter) local(ref string) string {
	if rest, ok := strings.CutPrefix(ref, a.id); ok && a.id != "" && (rest == "" || rest[0] == '#') {
		ref = rest
	}
	if ref == "" || ref == "#/" {
		return "#"
	}
	return ref
}

// find returns the target of a reference.
func (a *adapter) find(local string) (any, error) {
	if !strings.HasPrefix(local, "#") {
		return nil, fmt.Errorf("its input schema refers to %q, which is not part of it and is never fetched", textcut.Bytes(local, 200))
	}
	target, ok := point(a.root, local[1:])
	if !ok {
		target, ok = a.anchors[local[1:]]
	}
	if !ok {
		return nil, fmt.Errorf("its input schema refers to %q, which is not in it", textcut.Bytes(local, 200))
	}
	return target, nil
}

// name returns the name of a reference's target.
func name(local string) string {
	if local == "#" {
		return "the arguments as a whole"
	}
	return local[strings.LastIndexByte(local, '/')+1:]
}

// decode parses one JSON text and keeps numbers as written.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err == nil || decoder.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}
