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
	at, key := fmt.Sprintf("%s%d", prefix, i), clean.inputName(f.Name, i)
	note := func() part { return when(about != "", el("span", class("faint"), text(about))) }
	choices := f.Choices()
	if len(choices) > 0 && f.IsList() {
		return el("fieldset", class("field"), el("legend", text(label)), note(), clean.checkboxes(f, at, key, typed))
	}
	value, hidden := clean.defaultOf(f)
	if hidden != "" {
		about = strings.TrimSpace(about + " The default is " + hidden + ": leave the field empty for it.")
	}
	if typed.Has(key) {
		value = clean.unlessSecret(typed.Get(key))
	}
	name := attr("name", key)
	example := f.Example()
	if f.IsList() {
		example = "several, with commas between them"
	}
	input := el("input", attr("id", at), name, attr("value", value), when(f.IsNumber(), attr("inputmode", "decimal")), when(example != "", attr("placeholder", example)))
	if len(choices) > 0 {
		options := []part{option("", "", value)}
		for i, choice := range choices {
			options = append(options, option(clean.choiceValue(choices, i), clean(choice.Label()), value))
		}
		input = el("select", attr("id", at), name, group(options...))
	} else if f.IsBoolean() {
		input = el("select", attr("id", at), name, option("", "", value), option("true", "yes", value), option("false", "no", value))
	}
	return el("p", class("field"), el("label", attr("for", at), text(label)), input, note())
}

// checkboxes returns a box for each choice of a list. A hidden field with the same name says that the form had them,
// if none is checked.
func (clean cleaner) checkboxes(f *forms.Field, at, key string, typed url.Values) part {
	choices, boxes := f.Choices(), []part{hidden(key, "")}
	defaults, _ := f.Default.([]any)
	for i, choice := range choices {
		value := clean.choiceValue(choices, i)
		checked := slices.Contains(defaults, any(choice.Value))
		if typed.Has(key) {
			checked = slices.Contains(typed[key], value)
		}
		boxes = append(boxes, el("label", class("check"), el("input", attr("type", "checkbox"), attr("id", fmt.Sprintf("%s-%d", at, i)), attr("name", key),
			attr("value", value), when(checked, attr("checked", ""))), text(clean(choice.Label()))))
	}
	return group(boxes...)
}

// defaultOf returns the default of a field as the value of its input. If the input cannot have it as it
// is, value is empty and hidden is how it is shown: an empty input means the default then.
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
// shown as it is, or is empty, as the value of a form without a choice is.
func (clean cleaner) choiceValue(choices []forms.Choice, i int) string {
	if value := choices[i].Value; value != "" && clean.shown(value) == value {
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
		value, err := clean.schemaValue(f, i, values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Label(), err)
		}
		if value != nil {
			object[f.Name] = value
		}
	}
	return json.Marshal(object)
}

// schemaValue returns the value of a field that the inputs hold; nil leaves it out. A field that was not sent has
// its default, and so has an empty one whose input could not show it. An empty one that has shown it is left out.
func (clean cleaner) schemaValue(f *forms.Field, i int, values url.Values) (any, error) {
	sent := values[clean.inputName(f.Name, i)]
	switch {
	case len(sent) == 0:
		return f.Parse("")
	case f.IsList() && len(f.Choices()) > 0:
		list := []any{}
		for _, one := range sent {
			if one != "" {
				list = append(list, clean.chosen(f, one))
			}
		}
		if len(list) == 0 && !f.Required {
			return nil, nil
		}
		return list, f.Check(list)
	}
	given := clean.chosen(f, sent[0])
	if given == "" && sent[0] != "" { // the choice of an empty text
		return given, f.Check(given)
	}
	if shown, _ := clean.defaultOf(f); shown != "" && sent[0] == "" {
		without := *f
		without.Default = nil
		f = &without
	}
	return f.Parse(given)
}

// chosen returns the choice that has a value in the form, and other values as they are.
func (clean cleaner) chosen(f *forms.Field, given string) string {
	choices := f.Choices()
	for i := range choices {
		if given == clean.choiceValue(choices, i) {
			return choices[i].Value
		}
	}
	return given
}
