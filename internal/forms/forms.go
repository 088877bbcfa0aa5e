// SPDX-License-Identifier: Apache-2.0

// Package forms reads the forms with which servers ask a person (MCP 2025-11-25,
// client/elicitation), and checks the answers.
package forms

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/pattern"
)

// Field is one field of a form, a property of a flat schema.
type Field struct {
	Name     string
	Required bool
	schema
	// Default is the default value (SEP-1034), of the type of the answer. It is nil if
	// there is none, or one that is not a valid answer.
	Default any
}

// Choice is one of the values of a field that has only some.
type Choice struct {
	Value string `json:"const"`
	Title string `json:"title"` // for the person; may be empty
}

// Label returns the text for the person.
func (c Choice) Label() string { return cmp.Or(c.Title, c.Value) }

// schema is the part of JSON Schema that the protocol allows in a form, with the choices
// of SEP-1330.
type schema struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Format      string   `json:"format"` // of a string
	Pattern     string   `json:"pattern"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"` // titles for Enum, of older servers
	OneOf       []Choice `json:"oneOf"`
	AnyOf       []Choice `json:"anyOf"` // of the items of an array
	Items       *schema  `json:"items"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
	MinLength   *int     `json:"minLength"`
	MaxLength   *int     `json:"maxLength"`
	MinItems    *int     `json:"minItems"`
	MaxItems    *int     `json:"maxItems"`
}

// Fields returns the fields of a form in the order of its schema.
func Fields(text json.RawMessage) ([]Field, error) {
	var form map[string]json.RawMessage // a struct would take "Required" for "required"
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, err
	}
	var required []string
	if given := form["required"]; given != nil {
		if err := json.Unmarshal(given, &required); err != nil {
			return nil, err
		}
	}
	if len(form["properties"]) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(form["properties"]))
	decoder.UseNumber()
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("its properties are not an object")
	}
	var fields []Field
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		property, err := readProperty(decoder)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", name, err)
		}
		if n, ok := property.Default.(json.Number); ok {
			property.Default, _ = number(n.String()) // one that is too large is not a valid answer
		}
		field := Field{Name: fmt.Sprint(name), Required: slices.Contains(required, fmt.Sprint(name)), schema: property.schema}
		if property.Default != nil && field.Check(property.Default) == nil {
			field.Default = property.Default
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// property is the schema of a field.
type property struct {
	schema
	Default any `json:"default"`
}

func readProperty(from *json.Decoder) (p property, err error) {
	var value any
	if err := from.Decode(&value); err != nil {
		return p, err
	}
	keepKeywords(value)
	text, err := json.Marshal(value)
	if err != nil {
		return p, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return p, decoder.Decode(&p)
}

var keywords = []string{"type", "title", "description", "format", "pattern", "enum", "enumNames", "oneOf", "anyOf", "items", "const", "default",
	"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}

// keepKeywords removes all other members from a schema, such as "Type", which a struct would take for "type".
func keepKeywords(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(name string, _ any) bool { return !slices.Contains(keywords, name) })
		for _, one := range value {
			keepKeywords(one)
		}
	case []any:
		for _, one := range value {
			keepKeywords(one)
		}
	}
}

// Label returns the name of the field for the person.
func (f *Field) Label() string { return cmp.Or(f.Title, f.Name) }

// IsBoolean, IsList and IsNumber report which kind of value the field has. It is a text
// otherwise.
func (f *Field) IsBoolean() bool { return f.Type == "boolean" }
func (f *Field) IsList() bool    { return f.Type == "array" }
func (f *Field) IsNumber() bool  { return f.Type == "integer" || f.Type == "number" }

// Choices returns the possible values of the field, or of the items of a list; none means
// any value.
func (f *Field) Choices() []Choice {
	s := &f.schema
	if f.IsList() {
		s = f.Items
	}
	if s == nil {
		return nil
	}
	var choices []Choice
	titles := append(slices.Clone(s.EnumNames), make([]string, len(s.Enum))...)
	for i, value := range s.Enum {
		choices = append(choices, Choice{value, titles[i]})
	}
	return slices.Concat(choices, s.OneOf, s.AnyOf)
}

// Example returns an example of a text in the field's format; empty without a format that
// is known.
func (f *Field) Example() string { return formats[f.Format].example }

// Prompt returns the prompt for the field on one line.
func (f *Field) Prompt() string {
	text := display.Line(f.Label())
	if f.Description != "" {
		text += " (" + display.Line(f.Description) + ")"
	}
	switch choices := f.Choices(); {
	case f.IsBoolean():
		text += " [y/n]"
	case f.IsList():
		text += " [some of " + listed(choices) + "]"
	case len(choices) > 0:
		text += " [" + listed(choices) + "]"
	case f.Example() != "":
		text += " [such as " + f.Example() + "]"
	}
	switch {
	case f.Default != nil:
		text += " default " + display.Line(Breaks.Replace(Text(f.Default)))
	case !f.Required:
		text += " optional"
	}
	return text + ": "
}

// listed returns choices as they are typed, with their titles.
func listed(choices []Choice) string {
	var all []string
	for _, c := range choices {
		if c.Title != "" && c.Title != c.Value {
			c.Value += " (" + c.Title + ")"
		}
		all = append(all, display.Line(c.Value))
	}
	return strings.Join(all, ", ")
}

// Breaks shows the characters that end or divide lines as their codes.
var Breaks = strings.NewReplacer("\n", "<U+000A>", "\t", "<U+0009>")

// Text returns an answer as a text for the person.
func Text(answer any) string {
	switch value := answer.(type) {
	case string:
		return value
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case []any:
		var parts []string
		for _, part := range value {
			parts = append(parts, Text(part))
		}
		return strings.Join(parts, ", ")
	}
	text, _ := json.Marshal(answer)
	return string(text)
}

// Parse returns the answer that the person has typed. An empty text is the default, and
// nil if there is none and the field is not required.
func (f *Field) Parse(text string) (any, error) {
	if text == "" {
		if f.Default == nil && f.Required {
			return nil, errors.New("this is required")
		}
		return f.Default, nil
	}
	answer, err := f.parse(text)
	if err == nil {
		err = f.Check(answer)
	}
	return answer, err
}

var booleans = map[string]bool{"y": true, "yes": true, "true": true, "n": false, "no": false, "false": false}

func (f *Field) parse(text string) (any, error) {
	switch {
	case f.IsBoolean():
		if yes, known := booleans[strings.ToLower(text)]; known {
			return yes, nil
		}
		return nil, errors.New("answer y or n")
	case f.IsNumber():
		return number(text)
	case f.IsList():
		list := []any{}
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, f.chosen(strings.TrimSpace(part)))
		}
		return list, nil
	}
	return f.chosen(text), nil
}

// number returns a float64, or an int64 for an integer beyond 2^53, which float64 may not
// represent.
func number(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && (n > 1<<53 || n < -1<<53) {
		return n, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

// chosen returns the value of the choice with a title, and other texts as they are.
func (f *Field) chosen(text string) string {
	choices := f.Choices()
	if i := slices.IndexFunc(choices, func(c Choice) bool { return c.Title == text }); i >= 0 && !has(choices, text) {
		return choices[i].Value
	}
	return text
}

// Check returns an error if a value is not a valid answer: a bool, a float64, an int64, a
// string or a list of strings, within the bounds of the schema.
func (f *Field) Check(value any) error {
	if n, ok := value.(int64); ok {
		value = float64(n)
	}
	switch value := value.(type) {
	case bool:
		if f.IsBoolean() {
			return nil
		}
	case float64:
		if f.IsNumber() {
			return f.checkNumber(value)
		}
	case []any:
		if f.IsList() {
			return f.checkList(value)
		}
	case string:
		if !f.IsBoolean() && !f.IsNumber() && !f.IsList() {
			return f.checkText(value)
		}
	}
	return fmt.Errorf("it has another type than %s", f.Type)
}

func (f *Field) checkNumber(number float64) error {
	switch {
	case f.Type == "integer" && number != math.Trunc(number):
		return fmt.Errorf("%g is not a whole number", number)
	case f.Minimum != nil && number < *f.Minimum:
		return fmt.Errorf("it must be at least %g", *f.Minimum)
	case f.Maximum != nil && number > *f.Maximum:
		return fmt.Errorf("it must be at most %g", *f.Maximum)
	}
	return nil
}

func (f *Field) checkText(text string) error {
	length, choices := len([]rune(text)), f.Choices()
	switch {
	case len(choices) > 0 && !has(choices, text):
		return fmt.Errorf("answer one of %s", listed(choices))
	case f.MinLength != nil && length < *f.MinLength:
		return fmt.Errorf("it must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && length > *f.MaxLength:
		return fmt.Errorf("it must have at most %d characters", *f.MaxLength)
	}
	if format, known := formats[f.Format]; known && !format.fits(text) {
		return fmt.Errorf("%q is not %s, such as %s", text, format.name, format.example)
	}
	// The server checks costly patterns, and those in other dialects.
	if p, err := pattern.Compile(f.Pattern, pattern.MaxSize); err == nil && p.Steps(text) < 200_000 && !p.MatchString(text) {
		return fmt.Errorf("%q does not match %s", text, f.Pattern)
	}
	return nil
}

func (f *Field) checkList(list []any) error {
	choices := f.Choices()
	for i, item := range list {
		switch text, ok := item.(string); {
		case !ok:
			return errors.New("it has something that is not a text")
		case len(choices) > 0 && !has(choices, text):
			return fmt.Errorf("%q is not one of %s", text, listed(choices))
		case slices.Contains(list[:i], item):
			return fmt.Errorf("%q is there twice", text)
		}
	}
	switch {
	case f.MinItems != nil && len(list) < *f.MinItems:
		return fmt.Errorf("choose at least %d", *f.MinItems)
	case f.MaxItems != nil && len(list) > *f.MaxItems:
		return fmt.Errorf("choose at most %d", *f.MaxItems)
	}
	return nil
}

func has(choices []Choice, value string) bool {
	return slices.ContainsFunc(choices, func(c Choice) bool { return c.Value == value })
}

// formats are the formats that the protocol allows for strings of a form. Other formats
// are neither shown nor checked.
var formats = map[string]struct {
	name, example string
	fits          func(string) bool
}{
	"date":      {"a date", "2026-11-22", func(text string) bool { return isTime(time.DateOnly, text) }},
	"date-time": {"a date and time", "2026-11-22T15:04:05Z", func(text string) bool { return isTime(time.RFC3339, text) }},
	"email":     {"an email address", "ann@example.com", isEmail},
	"uri":       {"a URI", "https://example.com/", isURI},
}

func isTime(layout, text string) bool {
	_, err := time.Parse(layout, text)
	return err == nil
}

func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

func isURI(text string) bool {
	uri, err := url.Parse(text)
	return err == nil && uri.IsAbs()
}
