// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/forms"
)

// schemaFields returns inputs for the properties of a flat schema; none for another schema. prefix
// begins the IDs of the inputs, and typed has the values that a person sent before. A server wrote all
// texts of the schema.
func (clean cleaner) schemaFields(schema json.RawMessage, prefix string, typed url.Values) part {
	fields, err := forms.Fields(schema)
	if err != nil {
		return nil
	}
	var all []part
	for i := range fields {
		all = append(all, clean.schemaField(&fields[i], i, prefix, typed))
	}
	return group(all...)
}

func (clean cleaner) schemaField(f *forms.Field, i int, prefix string, typed url.Values) part {
	label, about := clean(f.Label()), clean(f.Description)
	if f.Required {
		label += " (required)"
	}
	value, hidden := clean.defaultOf(f)
	if hidden != "" {
		about = strings.TrimSpace(about + " The default is " + hidden + ": leave the field empty for it.")
	}
	at, key := fmt.Sprintf("%s%d", prefix, i), clean.inputName(f.Name, i)
	if typed.Has(key) {
		value = clean.unlessSecret(typed.Get(key))
	}
	name := attr("name", key)
	input := el("input", attr("id", at), name, attr("value", value), when(f.IsNumber(), attr("inputmode", "decimal")))
	if choices := f.Choices(); len(choices) > 0 && !f.IsList() {
		options := []part{option("", "", value)}
		for i, choice := range choices {
			options = append(options, option(clean.choiceValue(choices, i), clean(choice.Label()), value))
		}
		input = el("select", attr("id", at), name, group(options...))
	} else if f.IsBoolean() {
		input = el("select", attr("id", at), name, option("", "", value), option("true", "yes", value), option("false", "no", value))
	}
	return el("p", class("field"), el("label", attr("for", at), text(label)), input, when(about != "", el("span", class("faint"), text(about))))
}

// defaultOf returns the default of a field as the value of its input. If the input cannot have it as it
// is, value is empty and hidden is how it is shown: an empty input means the default too.
func (clean cleaner) defaultOf(f *forms.Field) (value, hidden string) {
	if f.Default == nil {
		return "", ""
	}
	if is, ok := f.Default.(bool); ok {
		return strconv.FormatBool(is), ""
	}
	value = forms.Text(f.Default)
	choices := f.Choices()
	if i := slices.IndexFunc(choices, func(one forms.Choice) bool { return one.Value == value }); i >= 0 && !f.IsList() {
		return clean.choiceValue(choices, i), ""
	}
	if shown := clean.shown(value); shown != value || strings.ContainsAny(value, "\r\n") { // an input has one line
		return "", shown
	}
	return value, ""
}

// inputName returns the name of the input for a field or an argument: its own, or its number if its own
// is not shown as it is.
func (clean cleaner) inputName(name string, i int) string {
	if clean.shown(name) != name {
		return fmt.Sprintf("n-%d", i)
	}
	return "v-" + name
}

// choiceValue returns the value that a form has for a choice: its own, or its number if its own is not
// shown as it is.
func (clean cleaner) choiceValue(choices []forms.Choice, i int) string {
	if value := choices[i].Value; clean.shown(value) == value {
		return value
	}
	return fmt.Sprintf("choice %d", i+1)
}

// schemaValues returns the object that such inputs hold.
func (clean cleaner) schemaValues(schema json.RawMessage, values url.Values) (json.RawMessage, error) {
	fields, err := forms.Fields(schema)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	for i := range fields {
		f := &fields[i]
		given, choices := values.Get(clean.inputName(f.Name, i)), f.Choices()
		for i := range choices {
			if !f.IsList() && given == clean.choiceValue(choices, i) {
				given = choices[i].Value
				break
			}
		}
		value, err := f.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Label(), err)
		}
		if value != nil {
			object[f.Name] = value
		}
	}
	return json.Marshal(object)
}
