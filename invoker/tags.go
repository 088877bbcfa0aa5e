// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/pattern"
	"github.com/google/jsonschema-go/jsonschema"
)

// keyword is a struct tag that becomes a keyword of the field's schema.
type keyword struct {
	types []string // the JSON types that it applies to; empty means any
	set   func(s *jsonschema.Schema, text string) error
}

var (
	numbers = []string{"number", "integer"}
	strs    = []string{"string"}
	arrays  = []string{"array"}
	objects = []string{"object"}
)

// keywords are the tags by name. The names are the same as in JSON Schema.
var keywords = map[string]keyword{
	"description":      {nil, setDescription},
	"title":            {nil, func(s *jsonschema.Schema, text string) error { s.Title = text; return nil }},
	"enum":             {slices.Concat(strs, numbers), setEnum},
	"minimum":          {numbers, func(s *jsonschema.Schema, text string) error { return setNumber(&s.Minimum, text) }},
	"maximum":          {numbers, func(s *jsonschema.Schema, text string) error { return setNumber(&s.Maximum, text) }},
	"exclusiveMinimum": {numbers, func(s *jsonschema.Schema, text string) error { return setNumber(&s.ExclusiveMinimum, text) }},
	"exclusiveMaximum": {numbers, func(s *jsonschema.Schema, text string) error { return setNumber(&s.ExclusiveMaximum, text) }},
	"multipleOf":       {numbers, func(s *jsonschema.Schema, text string) error { return setNumber(&s.MultipleOf, text) }},
	"minLength":        {strs, func(s *jsonschema.Schema, text string) error { return setCount(&s.MinLength, text) }},
	"maxLength":        {strs, func(s *jsonschema.Schema, text string) error { return setCount(&s.MaxLength, text) }},
	"pattern":          {strs, setPattern},
	"format":           {strs, setFormat},
	"minItems":         {arrays, func(s *jsonschema.Schema, text string) error { return setCount(&s.MinItems, text) }},
	"maxItems":         {arrays, func(s *jsonschema.Schema, text string) error { return setCount(&s.MaxItems, text) }},
	"uniqueItems": {arrays, func(s *jsonschema.Schema, text string) (err error) {
		s.UniqueItems, err = strconv.ParseBool(text)
		return
	}},
	"minProperties": {objects, func(s *jsonschema.Schema, text string) error { return setCount(&s.MinProperties, text) }},
	"maxProperties": {objects, func(s *jsonschema.Schema, text string) error { return setCount(&s.MaxProperties, text) }},
}

// applyTags applies the struct tags of t, and of all types in it, to the schema
// inferred from t. at is the position of t, for errors.
func (s *shape) applyTags(t reflect.Type, schema *jsonschema.Schema, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if schema == nil || s.schemas[t] != nil {
		return nil // the type defines its own schema
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return s.applyTags(t.Elem(), schema.Items, at)
	case reflect.Map:
		return s.applyTags(t.Elem(), schema.AdditionalProperties, at)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			property := schema.Properties[jsonName(field)]
			if field.Anonymous || !field.IsExported() || property == nil {
				continue
			}
			place := at + "." + field.Name
			if err := s.applyTags(field.Type, property, place); err != nil {
				return err
			}
			if err := tagField(field, property); err != nil {
				return fmt.Errorf("the field %s: %w", place, err)
			}
			if property.Default != nil {
				name := jsonName(field)
				schema.Required = slices.DeleteFunc(schema.Required, func(required string) bool { return required == name })
			}
		}
	}
	return nil
}

// tagField applies the tags of one field to its schema.
func tagField(field reflect.StructField, schema *jsonschema.Schema) error {
	if err := checkSpelling(field.Tag); err != nil {
		return err
	}
	tagged := []*jsonschema.Schema{schema}
	for _, name := range slices.Sorted(maps.Keys(keywords)) {
		text, ok := field.Tag.Lookup(name)
		if !ok {
			continue
		}
		target, err := keywords[name].target(schema)
		if err == nil {
			err = keywords[name].set(target, text)
		}
		if err != nil {
			return fmt.Errorf("the tag %s:%q %w", name, text, err)
		}
		tagged = append(tagged, target)
	}
	for _, target := range tagged {
		if err := checkTagged(target); err != nil {
			return err
		}
	}
	if text, ok := field.Tag.Lookup("default"); ok {
		if err := setDefault(schema, field.Type, text); err != nil {
			return fmt.Errorf("the tag default:%q %w", text, err)
		}
	}
	return nil
}

var tagNames = regexp.MustCompile(`(\w+):"`)

// checkSpelling returns an error for a misspelled keyword, which would be
// ignored: a missing limit is not noticed until it is needed.
func checkSpelling(tag reflect.StructTag) error {
	for _, match := range tagNames.FindAllStringSubmatch(string(tag), -1) {
		for _, name := range append(slices.Sorted(maps.Keys(keywords)), "default") {
			if written := match[1]; strings.EqualFold(written, name) && written != name {
				return fmt.Errorf("the tag %s must be written %s", written, name)
			}
		}
	}
	return nil
}

// target returns the schema that the keyword applies to: the schema of the field,
// or of its items if it is a list and the keyword is not for lists.
func (k keyword) target(schema *jsonschema.Schema) (*jsonschema.Schema, error) {
	if len(k.types) == 0 {
		return schema, nil
	}
	for target := schema; target != nil; target = target.Items {
		if slices.Contains(k.types, typeOf(target)) {
			return target, nil
		}
	}
	own := typeOf(schema)
	if own == "" {
		own = "value of any type"
	}
	return nil, fmt.Errorf("is for %s, and the field is %s", strings.Join(k.types, " or "), withArticle(own))
}

// typeOf returns the single JSON type of a schema, not counting null, or "" if it
// has none or several.
func typeOf(schema *jsonschema.Schema) string {
	types := slices.DeleteFunc(append(slices.Clone(schema.Types), schema.Type), func(t string) bool { return t == "" || t == "null" })
	if len(types) != 1 {
		return ""
	}
	return types[0]
}

func mayBeNull(schema *jsonschema.Schema) bool { return slices.Contains(schema.Types, "null") }

func setDescription(s *jsonschema.Schema, text string) error {
	if s.Description != "" && s.Description != text {
		return errors.New("differs from the description in another tag; keep one of them")
	}
	s.Description = text
	return nil
}

func setNumber(target **float64, text string) error {
	exact, isNumber := new(big.Rat).SetString(text)
	if !isNumber || !json.Valid([]byte(text)) || numberFault(json.Number(text)) != "" {
		return errors.New("is not a number")
	}
	f, exactly := exact.Float64()
	if exact.IsInt() && !exactly {
		return errors.New("has more digits than a schema can store")
	}
	*target = &f
	return nil
}

func setCount(target **int, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("is not a whole number of 0 or more")
	}
	*target = &n
	return nil
}

func setPattern(s *jsonschema.Schema, text string) error {
	if _, err := pattern.Compile(text, pattern.MaxSize); err != nil {
		return fmt.Errorf("is not a regular expression that can be checked: %w", err)
	}
	s.Pattern = text
	return nil
}

func setFormat(s *jsonschema.Schema, text string) error {
	if _, ok := formats[text]; !ok {
		return fmt.Errorf("is not one of %s", strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	s.Format = text
	return nil
}

// setEnum parses values separated by commas, or a JSON array.
func setEnum(s *jsonschema.Schema, text string) error {
	var values []any
	if parsed, _, faults := parse([]byte(text)); len(faults) == 0 {
		values, _ = parsed.([]any)
	}
	if values == nil {
		for item := range strings.SplitSeq(text, ",") {
			value, err := valueOf(s, strings.TrimSpace(item))
			if err != nil {
				return err
			}
			values = append(values, value)
		}
	}
	seen := map[string]bool{}
	for _, value := range values {
		shown := shown(value)
		if value == "" || seen[shown] {
			return errors.New("has an empty or a repeated value")
		}
		seen[shown] = true
	}
	if len(values) == 0 {
		return errors.New("has no values")
	}
	if mayBeNull(s) {
		values = append(values, nil)
	}
	s.Enum = values
	return nil
}

// valueOf parses a value in a tag: JSON, except that strings have no quotes.
func valueOf(s *jsonschema.Schema, text string) (any, error) {
	if typeOf(s) == "string" {
		return text, nil
	}
	value, _, faults := parse([]byte(text))
	if len(faults) > 0 {
		return nil, fmt.Errorf("is not JSON: %s", faults[0].text)
	}
	return value, nil
}

// setDefault sets a default that the schema must allow and the field must be able
// to hold.
func setDefault(s *jsonschema.Schema, t reflect.Type, text string) error {
	value, err := valueOf(s, text)
	if err != nil {
		return err
	}
	if err := allows(s, value); err != nil {
		return err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(encoded, reflect.New(t).Interface()); err != nil {
		return fmt.Errorf("does not fit the field: %w", err)
	}
	s.Default = encoded
	return nil
}

// checkTagged returns an error if the keywords of a schema contradict each other.
func checkTagged(s *jsonschema.Schema) error {
	switch {
	case s.Minimum != nil && s.Maximum != nil && *s.Minimum > *s.Maximum:
		return fmt.Errorf("its minimum %v is greater than its maximum %v", *s.Minimum, *s.Maximum)
	case s.MultipleOf != nil && *s.MultipleOf <= 0:
		return fmt.Errorf("its multipleOf %v is not greater than 0", *s.MultipleOf)
	case crossed(s.MinLength, s.MaxLength), crossed(s.MinItems, s.MaxItems), crossed(s.MinProperties, s.MaxProperties):
		return errors.New("its lower limit is greater than its upper limit")
	}
	for _, value := range s.Enum {
		if value == nil {
			continue
		}
		if err := allows(s, value); err != nil {
			return fmt.Errorf("the value %s of its enum %w", shown(value), err)
		}
	}
	return nil
}

func crossed(low, high *int) bool { return low != nil && high != nil && *low > *high }

// allows returns an error if a schema does not allow a value.
func allows(s *jsonschema.Schema, value any) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	c, err := newChecker(text, true)
	if err != nil {
		return err
	}
	if faults := c.check(value); len(faults) > 0 {
		return fmt.Errorf("breaks the field's own schema:%s", report("it", faults))
	}
	return nil
}
