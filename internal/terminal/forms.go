// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
)

// formField is one field of a form, a property of a flat schema.
type formField struct {
	name     string
	required bool
	fieldSchema
}

// fieldSchema is the part of JSON Schema that the protocol allows in a form.
type fieldSchema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"` // of a string
	Enum        []string        `json:"enum"`
	OneOf       []formChoice    `json:"oneOf"`
	AnyOf       []formChoice    `json:"anyOf"` // of the items of an array
	Items       *fieldSchema    `json:"items"`
	Default     json.RawMessage `json:"default"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MinLength   *int            `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
}

type formChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formFields returns the fields of a form in the order of its schema.
func formFields(schema json.RawMessage) ([]formField, error) {
	var form struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &form); err != nil {
		return nil, err
	}
	if len(form.Properties) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(form.Properties))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, fmt.Errorf("its properties are not an object")
	}
	var fields []formField
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		field := formField{name: fmt.Sprint(name)}
		if err := decoder.Decode(&field.fieldSchema); err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
		field.required = slices.Contains(form.Required, field.name)
		fields = append(fields, field)
	}
	return fields, nil
}

// prompt returns the prompt for the field.
func (f *formField) prompt() string {
	text := cmp.Or(display.Line(f.Title), display.Line(f.name))
	if f.Description != "" {
		text += " (" + display.Line(f.Description) + ")"
	}
	switch choices := f.choices(); {
	case f.Type == "boolean":
		text += " [y/n]"
	case f.Type == "array":
		text += " [some of " + display.Line(strings.Join(f.Items.choices(), ", ")) + "]"
	case len(choices) > 0:
		text += " [" + display.Line(strings.Join(choices, ", ")) + "]"
	case formats[f.Format].example != "":
		text += " [such as " + formats[f.Format].example + "]"
	}
	switch {
	case len(f.Default) > 0:
		text += " default " + display.Line(string(f.Default))
	case !f.required:
		text += " optional"
	}
	return text + ": "
}

// choices returns the allowed values of the field; none means any value.
func (s *fieldSchema) choices() []string {
	if s == nil {
		return nil
	}
	choices := slices.Clone(s.Enum)
	for _, c := range slices.Concat(s.OneOf, s.AnyOf) {
		choices = append(choices, c.Const)
	}
	return choices
}

// parse returns the value that the user gave, or nil if the field was left out.
func (f *formField) parse(answer string) (any, error) {
	if answer == "" {
		switch {
		case len(f.Default) > 0:
			var value any
			return value, json.Unmarshal(f.Default, &value)
		case f.required:
			return nil, fmt.Errorf("this is required")
		}
		return nil, nil
	}
	switch f.Type {
	case "boolean":
		return parseBoolean(answer)
	case "integer", "number":
		return f.parseNumber(answer)
	case "array":
		return f.parseList(answer)
	}
	return f.parseText(answer)
}

func parseBoolean(answer string) (any, error) {
	switch strings.ToLower(answer) {
	case "y", "yes", "true":
		return true, nil
	case "n", "no", "false":
		return false, nil
	}
	return nil, fmt.Errorf("answer y or n")
}

func (f *formField) parseNumber(answer string) (any, error) {
	number, err := strconv.ParseFloat(answer, 64)
	switch {
	case err != nil, math.IsNaN(number), math.IsInf(number, 0):
		return nil, fmt.Errorf("%q is not a number", answer)
	case f.Type == "integer" && number != float64(int64(number)):
		return nil, fmt.Errorf("%q is not a whole number", answer)
	case f.Minimum != nil && number < *f.Minimum:
		return nil, fmt.Errorf("it must be at least %g", *f.Minimum)
	case f.Maximum != nil && number > *f.Maximum:
		return nil, fmt.Errorf("it must be at most %g", *f.Maximum)
	}
	return number, nil
}

func (f *formField) parseText(answer string) (any, error) {
	length, choices := len([]rune(answer)), f.choices()
	switch {
	case len(choices) > 0 && !slices.Contains(choices, answer):
		return nil, fmt.Errorf("answer one of %s", strings.Join(choices, ", "))
	case f.MinLength != nil && length < *f.MinLength:
		return nil, fmt.Errorf("it must have at least %d characters", *f.MinLength)
	case f.MaxLength != nil && length > *f.MaxLength:
		return nil, fmt.Errorf("it must have at most %d characters", *f.MaxLength)
	}
	if format, known := formats[f.Format]; known && !format.fits(answer) {
		return nil, fmt.Errorf("%q is not %s, such as %s", answer, format.name, format.example)
	}
	return answer, nil
}

// formats are the formats that the protocol allows for strings of a form (MCP 2025-11-25,
// client/elicitation). Other formats are neither shown nor checked.
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

// parseList parses choices separated by commas.
func (f *formField) parseList(answer string) (any, error) {
	choices, values := f.Items.choices(), []any{}
	for part := range strings.SplitSeq(answer, ",") {
		part = strings.TrimSpace(part)
		if len(choices) > 0 && !slices.Contains(choices, part) {
			return nil, fmt.Errorf("%q is not one of %s", part, strings.Join(choices, ", "))
		}
		values = append(values, part)
	}
	return values, nil
}
