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

// The causes of a failure of [AskFor] when a person does not answer.
var (
	ErrDeclined  = errors.New("the person declined")
	ErrDismissed = errors.New("the person dismissed the question")
)

// AskFor asks the person behind the call in ctx and returns the answer:
//
//	type Confirmation struct {
//		Sure   bool   `json:"sure" description:"really delete all of them"`
//		Reason string `json:"reason,omitempty" maxLength:"200"`
//	}
//
//	answer, err := invoker.AskFor[Confirmation](ctx, "Delete 40 tasks?")
//
// T is a struct. Its schema is inferred as by [New], including struct tags, and
// must be flat as MCP requires (2025-11-25, client/elicitation): fields are
// strings, integers, other numbers, booleans, or lists of strings from an enum;
// enums are of strings; formats are email, uri, date and date-time. Do not ask
// for secrets in this way.
//
// An answer that does not fit the schema is a failure with the code [Protocol]. If the person says no or does not answer, the failure has
// the code [Denied] and wraps [ErrDeclined] or [ErrDismissed]. If no person can
// be asked, its code is [Unavailable]. A tool can return each of these as it is.
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

// form is a struct type that [AskFor] can ask for.
type form struct {
	input *input
	shown json.RawMessage
}

var forms sync.Map // *form by reflect.Type; bounded by the number of types in the program

func formOf(t reflect.Type) (*form, error) {
	if known, ok := forms.Load(t); ok {
		return known.(*form), nil
	}
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is not a struct")
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

// flatten turns an inferred schema into the schema of a form, without null and
// other parts that forms do not have.
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

// orderOf returns the names of the properties in the order of the schema.
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
			return fmt.Errorf("has the format %s; a form supports email, uri, date and date-time", property.Format)
		}
		return nil
	case "number", "integer":
		if len(property.Enum) > 0 {
			return errors.New("has an enum of numbers; a form supports enums of strings")
		}
		return nil
	case "boolean":
		return nil
	case "array":
		if property.Items != nil && typeOf(property.Items) == "string" && len(property.Items.Enum) > 0 {
			return nil
		}
		return errors.New("is a list; a form supports only lists of strings with an enum")
	}
	return errors.New("is not a string, a number, a boolean or a list of choices; a form cannot be nested")
}

// read stores the person's answer in target, a pointer.
func (f *form) read(result *ElicitResult, target any) error {
	switch {
	case result == nil || result.Action == Dismiss:
		return &Failure{Code: Denied, Message: "The person was asked, but dismissed the question.", Cause: ErrDismissed}
	case result.Action != Accept:
		return &Failure{Code: Denied, Message: "The person was asked and declined.", Cause: ErrDeclined}
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
		return misanswered(errors.New("the answer does not fit the schema of the question:" + report("answer", faults)))
	}
	if failure := f.input.decode(text, value, target); failure != nil {
		return misanswered(failure)
	}
	return nil
}

// misanswered returns the failure for an answer that does not fit its schema. The
// person's input is only in the cause, for the log, and not shown to the model.
func misanswered(cause error) *Failure {
	return &Failure{Code: Protocol, Message: "The person was asked, but the answer does not fit the question.", Cause: cause}
}

// SampleText asks the model of the conversation that the call in ctx belongs to,
// and returns its answer to prompt. The instruction is system, which may be empty. It
// fails as [Call.Sample] does.
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

// Notef logs a line if the call in ctx has a listener for log entries. The level
// is as in [LogEntry].
func Notef(ctx context.Context, level, format string, args ...any) {
	call := CallFrom(ctx)
	if call == nil || call.Log == nil {
		return
	}
	text, err := json.Marshal(fmt.Sprintf(format, args...))
	if err == nil { // always true: a string can be marshaled
		call.Note(LogEntry{Level: level, Data: text})
	}
}
