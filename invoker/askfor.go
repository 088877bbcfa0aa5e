// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/consort-go/consort/canister"
)

// What a person can do with a question beside answering it; see [AskFor].
var (
	ErrDeclined  = errors.New("the person said no")
	ErrDismissed = errors.New("the person gave no answer")
)

// AskFor asks the person behind the call that ctx is of, and returns the
// answer:
//
//	type Confirmation struct {
//		Sure   bool   `json:"sure" description:"really delete all of them"`
//		Reason string `json:"reason,omitempty" maxLength:"200"`
//	}
//
//	answer, err := invoker.AskFor[Confirmation](ctx, "Delete 40 tasks?")
//
// T is a struct whose schema is inferred as [New] does, struct tags included,
// and which is as flat as MCP has it (2025-11-25, client/elicitation): fields
// are strings, whole or other numbers, booleans, or lists of strings from an
// enum; enums are of strings; formats are email, uri, date and date-time.
// Secrets are not asked for in this way.
//
// The answer fits the schema, whoever gave it; one that does not is a failure
// with the code [Protocol]. If the person says no or nothing the failure has
// the code [Denied], and errors.Is tells [ErrDeclined] from [ErrDismissed]. If
// nobody can be asked its code is [Unavailable]. A tool can return each of them
// as it is.
func AskFor[T any](ctx context.Context, message string) (T, error) {
	var answer T
	form, err := formOf(reflect.TypeFor[T]())
	if err != nil {
		return answer, fmt.Errorf("%v cannot be asked for: %w", reflect.TypeFor[T](), err)
	}
	result, err := CallFrom(ctx).Ask(ctx, &ElicitRequest{Message: message, Schema: slices.Clone(form.shown)})
	if err != nil {
		return answer, err
	}
	if err := form.read(result, &answer); err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

// form is a struct type that a person can be asked for.
type form struct {
	input *input
	shown json.RawMessage
}

var forms sync.Map // of *form by reflect.Type: types of a program, so that there are only so many

func formOf(t reflect.Type) (*form, error) {
	if known, ok := forms.Load(t); ok {
		return known.(*form), nil
	}
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is no struct")
	}
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	f := &form{input: &input{t: t, shape: s}}
	var def Definition
	if err := f.input.infer(&def); err != nil {
		return nil, err
	}
	if f.shown, err = flatten(def.InputSchema); err != nil {
		return nil, err
	}
	if f.input.check, err = newChecker(def.InputSchema, true); err != nil {
		return nil, err
	}
	forms.Store(t, f)
	return f, nil
}

// flatten makes a form of an inferred schema: null, and what else a form does
// not say, is left out.
func flatten(inferred json.RawMessage) (json.RawMessage, error) {
	var root jsonschema.Schema
	if err := json.Unmarshal(inferred, &root); err != nil {
		return nil, err
	}
	var faults []error
	for name, property := range root.Properties {
		if err := flattenField(property); err != nil {
			faults = append(faults, fmt.Errorf("the property %s %w", name, err))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	root.AdditionalProperties = nil
	root.PropertyOrder = orderOf(inferred)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return json.Marshal(&root)
}

// orderOf returns the names of the properties as the schema has them.
func orderOf(schema json.RawMessage) (names []string) {
	edit(schema, []string{"properties"}, func(text json.RawMessage) json.RawMessage {
		parts, _ := partsOf(text)
		for _, p := range parts {
			names = append(names, p.name)
		}
		return text
	})
	return names
}

func flattenField(property *jsonschema.Schema) error {
	property.Type, property.Types = typeOf(property), nil
	property.Enum = slices.DeleteFunc(property.Enum, func(value any) bool { return value == nil })
	switch property.Type {
	case "string":
		if property.Format != "" && !slices.Contains([]string{"email", "uri", "date", "date-time"}, property.Format) {
			return fmt.Errorf("has the format %s; a form knows email, uri, date and date-time", property.Format)
		}
		return nil
	case "number", "integer":
		if len(property.Enum) > 0 {
			return errors.New("has an enum of numbers; a form has enums of strings")
		}
		return nil
	case "boolean":
		return nil
	case "array":
		if property.Items != nil && typeOf(property.Items) == "string" && len(property.Items.Enum) > 0 {
			return nil
		}
		return errors.New("is a list, but not one of strings with an enum")
	}
	return errors.New("is not a string, a number, a boolean or a list of choices; a form is flat")
}

// read stores the answer of the person in target, a pointer.
func (f *form) read(result *ElicitResult, target any) error {
	switch {
	case result == nil || result.Action == Dismiss:
		return &Failure{Code: Denied, Message: "The person was asked, and gave no answer.", Cause: ErrDismissed}
	case result.Action != Accept:
		return &Failure{Code: Denied, Message: "The person was asked, and said no.", Cause: ErrDeclined}
	}
	given := make(map[string]any, len(result.Content))
	for name, value := range result.Content {
		if value != nil {
			given[name] = value
		}
	}
	text, err := json.Marshal(given)
	if err != nil {
		return misanswered(err)
	}
	value, _, faults := parse(text)
	if len(faults) == 0 {
		faults = f.input.check.check(value)
	}
	if len(faults) > 0 {
		return misanswered(errors.New("the answer does not fit what was asked for:" + report("answer", faults)))
	}
	if failure := f.input.decode(text, value, target); failure != nil {
		return misanswered(failure)
	}
	return nil
}

// misanswered is the failure of an answer that breaks its schema. What the
// person wrote is for the log, not for the model.
func misanswered(cause error) *Failure {
	return &Failure{Code: Protocol, Message: "The person was asked, and the answer does not fit the question.", Cause: cause}
}

// SampleText asks the model of the conversation that ctx is a call of for an
// answer to a prompt, under an instruction that may be empty. It fails as
// [Call.Sample] does.
func SampleText(ctx context.Context, system, prompt string) (string, error) {
	result, err := CallFrom(ctx).Sample(ctx, &SampleRequest{
		System:   system,
		Messages: []SampleMessage{{Role: "user", Content: canister.Texts(prompt)}},
	})
	if err != nil {
		return "", err
	}
	return result.Text, nil
}

// Notef logs a line for whoever watches the call that ctx is of, if anybody
// does. The level is one of those of [LogEntry].
func Notef(ctx context.Context, level, format string, args ...any) {
	call := CallFrom(ctx)
	if call == nil || call.Log == nil {
		return
	}
	text, err := json.Marshal(fmt.Sprintf(format, args...))
	if err == nil { // a string can be written
		call.Note(LogEntry{Level: level, Data: text})
	}
}
