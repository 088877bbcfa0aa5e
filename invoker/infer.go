// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/consort-go/consort/internal/contain"
)

// Describer is implemented by types that define their own JSON Schema, for cases
// where the inferred schema would be too general:
//
//	type Unit string
//
//	func (Unit) JSONSchema() string { return `{"type":"string","enum":["c","f"]}` }
//
// [New] calls it on a zero value wherever the type occurs in arguments or
// results.
type Describer interface {
	// JSONSchema returns one JSON Schema in draft 2020-12.
	JSONSchema() string
}

// shape holds facts about a type that are collected before its schema is
// inferred.
type shape struct {
	schemas map[reflect.Type]*jsonschema.Schema      // schemas of types that do not use inference
	fields  map[reflect.Type]map[string]reflect.Type // fields of structs by JSON name
	rounds  bool                                     // whether there are types whose numbers are rounded
}

// shapeOf visits all types that t consists of.
func shapeOf(t reflect.Type) (*shape, error) {
	s := &shape{
		schemas: map[reflect.Type]*jsonschema.Schema{},
		fields:  map[reflect.Type]map[string]reflect.Type{},
	}
	return s, s.walk(t, map[reflect.Type]bool{})
}

func (s *shape) walk(t reflect.Type, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	own, opaque, err := ownSchema(t)
	if err != nil {
		return err
	}
	if own != nil {
		s.schemas[t] = own
	}
	if opaque {
		return nil
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Interface:
		s.rounds = true
	case reflect.Map, reflect.Slice, reflect.Array:
		return s.walk(t.Elem(), seen)
	case reflect.Struct:
		s.fields[t] = map[string]reflect.Type{}
		for _, field := range reflect.VisibleFields(t) {
			if fault := s.fieldFault(t, field); fault != "" {
				return fmt.Errorf("the field %v.%s %s", t, field.Name, fault)
			}
			name := jsonName(field)
			if !field.Anonymous && (name == "" || !field.IsExported()) {
				continue
			}
			if !field.Anonymous {
				s.fields[t][name] = field.Type
			}
			if err := s.walk(field.Type, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// fieldFault returns the reason why package json and schema inference treat a
// field of the struct t differently, or "" if they do not.
func (s *shape) fieldFault(t reflect.Type, field reflect.StructField) string {
	tag := strings.Split(field.Tag.Get("json"), ",")
	switch name := jsonName(field); {
	case field.Anonymous && tag[0] != "":
		return "is embedded and has the name " + tag[0] + " in its json tag; do not embed it"
	case field.Anonymous:
		return embeddedFault(field)
	case !field.IsExported() || name == "":
	case strings.ContainsFunc(name, func(r rune) bool { return !inName(r) }):
		return fmt.Sprintf("has the name %q in its json tag; package json accepts only letters, digits and some punctuation there", name)
	case slices.Contains(tag[1:], "string"):
		return "has the option string in its json tag, which a schema cannot express; give the field the type string"
	case s.fields[t][name] != nil:
		return "has the name " + name + " in JSON, as another field does"
	}
	return ""
}

func embeddedFault(field reflect.StructField) string {
	inner := field.Type
	if inner.Kind() == reflect.Pointer {
		if !field.IsExported() {
			return "is an embedded pointer to an unexported type, which package json cannot set; do not embed it"
		}
		inner = inner.Elem()
	}
	if inner.Kind() != reflect.Struct && field.IsExported() {
		return "is embedded and is not a struct; give it a name"
	}
	return ""
}

// inName reports whether package json accepts a rune in a name in a tag. It
// ignores names with other runes.
func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

// jsonName returns the name of a field in JSON, or "" if it has none.
func jsonName(field reflect.StructField) string {
	tag, ok := field.Tag.Lookup("json")
	if tag == "-" {
		return ""
	}
	if name, _, _ := strings.Cut(tag, ","); ok && name != "" {
		return name
	}
	return field.Name
}

var (
	timeType = reflect.TypeFor[time.Time]()
	byteType = reflect.TypeFor[[]byte]()

	numberType = reflect.TypeFor[json.Number]()
)

// anyType returns all types. Inference adds null to the types of a pointer's
// element; without a list of types, the result would allow nothing but null.
func anyType() []string {
	return []string{"null", "boolean", "object", "array", "number", "string"}
}

// ownSchema returns the schema of a type that is not marshaled as its Go
// structure suggests, or nil. opaque reports whether the structure is irrelevant.
func ownSchema(t reflect.Type) (schema *jsonschema.Schema, opaque bool, err error) {
	opaque = isOpaque(t)
	switch {
	case implements[Describer](t):
		var text string
		if err := contain.Call("the method JSONSchema", func() { text = reflect.New(t).Interface().(Describer).JSONSchema() }); err != nil {
			return nil, false, fmt.Errorf("the type %v provides no schema: %w", t, err)
		}
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			return nil, false, fmt.Errorf("the method JSONSchema of %v did not return a JSON Schema: %w", t, err)
		}
		if schema == nil {
			return nil, false, fmt.Errorf("the method JSONSchema of %v did not return a JSON Schema: it returned null", t)
		}
		if schema.Type == "" && schema.Types == nil {
			schema.Types = anyType()
		}
		return schema, opaque, nil
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, true, nil
	case t == numberType:
		return &jsonschema.Schema{Type: "number"}, true, nil
	case t == byteType:
		return &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}, true, nil
	case implements[json.Marshaler](t) || implements[json.Unmarshaler](t):
		return &jsonschema.Schema{Types: anyType()}, true, nil
	case opaque:
		return &jsonschema.Schema{Type: "string"}, true, nil
	}
	return nil, false, nil
}

// isOpaque reports whether a type has its own methods for marshaling or
// unmarshaling.
func isOpaque(t reflect.Type) bool {
	return implements[json.Marshaler](t) || implements[json.Unmarshaler](t) ||
		implements[encoding.TextMarshaler](t) || implements[encoding.TextUnmarshaler](t)
}

// implements reports whether t or *t implements I.
func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	if t.Kind() == reflect.Interface {
		return false // the dynamic type is unknown
	}
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}

// infer returns the JSON Schema of t, including struct tags.
func (s *shape) infer(t reflect.Type) (*jsonschema.Schema, error) {
	inferred, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: s.schemas})
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Struct && inferred.Properties == nil && s.schemas[t] == nil {
		inferred.Properties = map[string]*jsonschema.Schema{} // model APIs require the member, even if it is empty
	}
	s.allowNilMaps(t, inferred, true)
	return inferred, s.applyTags(t, inferred, t.String())
}

// allowNilMaps allows null for the maps in t, as inference does for slices:
// package json marshals nil maps and slices as null. If the whole value is a map,
// it stays an object, because MCP requires one for arguments and results.
func (s *shape) allowNilMaps(t reflect.Type, schema *jsonschema.Schema, whole bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if schema == nil || s.schemas[t] != nil {
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		s.allowNilMaps(t.Elem(), schema.Items, false)
	case reflect.Map:
		if !whole && schema.Type == "object" {
			schema.Type, schema.Types = "", []string{"null", "object"}
		}
		s.allowNilMaps(t.Elem(), schema.AdditionalProperties, false)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			if property := schema.Properties[jsonName(field)]; !field.Anonymous && field.IsExported() {
				s.allowNilMaps(field.Type, property, false)
			}
		}
	}
}

// strays finds members of value that package json would assign to a field of t
// although their names differ in case. Their values were not checked as values of
// that field.
//
// It also finds null where t cannot hold it, which package json ignores.
func (s *shape) strays(t reflect.Type, value any, path []string) []violation {
	if value == nil && !holdsNull(t) {
		return []violation{{pointer: pointerOf(path), text: fmt.Sprintf("null does not fit into %v", t)}}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var violations []violation
	switch value := value.(type) {
	case map[string]any:
		fields := s.fields[t]
		for name, member := range value {
			path := append(path[:len(path):len(path)], name)
			switch inner, ok := fields[name]; {
			case ok:
				violations = append(violations, s.strays(inner, member, path)...)
			case fields != nil:
				if meant := sameFold(name, fields); meant != "" {
					violations = append(violations, violation{pointer: pointerOf(path), text: "must be written " + meant})
				}
			case t.Kind() == reflect.Map:
				violations = append(violations, s.strays(t.Elem(), member, path)...)
			}
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil
		}
		for i, item := range value {
			violations = append(violations, s.strays(t.Elem(), item, append(path[:len(path):len(path)], strconv.Itoa(i)))...)
		}
	}
	return violations
}

// culprit returns the path of a value that cannot be unmarshaled into t: the path
// of the first such member or item, if there is one.
func (s *shape) culprit(t reflect.Type, value any, path []string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fits := func(t reflect.Type, value any) bool {
		text, err := json.Marshal(plainIntegers(value))
		return err == nil && json.Unmarshal(text, reflect.New(t).Interface()) == nil
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			member := s.memberType(t, name)
			if member != t && !fits(member, value[name]) {
				return s.culprit(member, value[name], append(path, name))
			}
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return path
		}
		for i, item := range value {
			if !fits(t.Elem(), item) {
				return s.culprit(t.Elem(), item, append(path, strconv.Itoa(i)))
			}
		}
	}
	return path
}

func holdsNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return implements[json.Unmarshaler](t)
}

func sameFold(name string, fields map[string]reflect.Type) string {
	for field := range fields {
		if strings.EqualFold(field, name) {
			return field
		}
	}
	return ""
}
