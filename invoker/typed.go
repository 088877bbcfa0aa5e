// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/google/jsonschema-go/jsonschema"
)

// Options are the optional settings of [New]. The zero value is the default.
type Options struct {
	// Title is a name for people.
	Title string
	// Hints describe how the tool behaves. By default it may do anything.
	Hints Hints
	// Exclusive requests that no other invocation of the same message runs at the
	// same time as this one.
	Exclusive bool
	// InputSchema is the JSON Schema of the arguments. Set it for restrictions that
	// cannot be inferred, such as values from a configuration. It must match the
	// argument type: arguments that it allows but the type cannot hold are refused.
	// Its formats are annotations, and struct tags are not used. By default it is
	// inferred.
	InputSchema json.RawMessage
	// Needs are the trusted values that the tool requires. The function reads them
	// with [Trusted.From]; a field of In with the same name, in the same case, is
	// filled in. If a value is missing or of the wrong type, the call fails with
	// [Unauthorized] before anything else is checked. Only the program can set them:
	// arguments with these names, in upper or lower case, are removed from the published schema
	// and refused with a [Forged] as the cause.
	Needs []Need
	// Metadata is for programs; the model never sees it.
	Metadata canister.Fields
}

// New makes a tool from a Go function.
//
// In is a struct, or a map with string keys. Its JSON Schema is inferred by the
// rules of [github.com/google/jsonschema-go/jsonschema.For]: the json tag names a
// property, the jsonschema tag describes it, and a field without omitempty or
// omitzero is required; other properties are not allowed. Types that implement
// [Describer] define their own schema, time.Time is a date-time, []byte is
// base64, json.Number is a number, types with text methods are strings, and types
// with their own JSON methods may be anything. Slices, maps and pointers may be
// null, which package json reads and writes as nil; but a nil map that is the
// whole result is written as {}, and its schema does not allow null. New returns an
// error for features that such a schema cannot express: the option string of json
// tags, embedded fields with a name, and two fields with the same name.
//
// More tags become keywords of the field's schema and are enforced like the rest
// of it:
//
//	title, description   any text
//	enum                 the values allowed, with commas between, or a JSON array
//	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
//	minLength, maxLength in characters
//	pattern              a regular expression
//	format               date, date-time, time, duration, email, hostname, ipv4,
//	                     ipv6, uri, uri-reference, uri-template, uuid,
//	                     json-pointer or semver
//	minItems, maxItems, uniqueItems:"true"
//	minProperties, maxProperties
//	default              JSON, but strings without quotes
//
// On a list, the tags about lists, title, description and default apply to the list,
// all others to its items. A field with a default is optional. If its enclosing object
// is given without it, the function gets the default, which Call.Arguments lacks.
// docs/decisions/0008-struct-tags.md has the reasons.
//
// Arguments are checked before the function runs. Absent arguments and null mean
// {}. A top-level member that is null although the schema does not allow null
// counts as missing; at deeper levels it is a violation. If the arguments break
// the schema, the call fails with [InvalidArguments] and a message that lists the
// violations, at most ten, by their JSON pointers. Unlike in package json, a duplicate
// member, or one whose name differs in case from the field's, is a violation.
// Integers may be written 3.0 or 3e2, as JSON Schema allows.
//
// The result of the function becomes content according to its type: a string is
// text; a [canister.Content], []canister.Content or [Output] is used as it is;
// struct{} means no content; any other value is structured content, which is
// checked against the schema inferred from Out, as [Raw] describes. A result of
// an interface type is treated like the value it holds, without a schema.
//
// An error of the function is returned by Invoke as it is. To choose the code and
// the message for the model, return a [Failure], such as one from [Failf]; the
// model does not see the text of any other error. New returns an error if the
// name is empty, a schema cannot be made, a tag is wrong, or the types are not
// suitable. The function may be called concurrently. See [Raw] for panics and contexts.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *Options) (Invoker, error) {
	if fn == nil {
		return nil, fmt.Errorf("tool %q has no function", name)
	}
	def := Definition{Name: name, Description: description}
	return newTyped(def, reflect.TypeFor[In](), reflect.TypeFor[Out](), opts, func(ctx context.Context, take func(any) *Failure) (Output, error) {
		var argument In
		if failure := take(&argument); failure != nil {
			return Output{}, failure
		}
		result, err := fn(ctx, argument)
		if err != nil {
			return Output{}, err
		}
		return outputOf(result, &result)
	})
}

// newTyped makes a tool whose function is run. run calls take to store the
// argument in target, a pointer.
func newTyped(def Definition, in, out reflect.Type, opts *Options, run func(ctx context.Context, take func(target any) *Failure) (Output, error)) (Invoker, error) {
	input, err := describe(&def, in, out, opts)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", def.Name, err)
	}
	return input.tool(def, func(ctx context.Context, call *Call, arguments any) (Output, error) {
		return run(ctx, func(target any) *Failure { return input.take(call.Arguments, arguments, target) })
	})
}

// tool makes the tool for a function that takes this input.
func (in *input) tool(def Definition, run function) (Invoker, error) {
	fills, types, err := in.filled(&def)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", def.Name, err)
	}
	own := rules{needs: in.needs, assertFormats: in.inferred, typed: true}
	if len(fills) > 0 {
		own.needs = nil // guard checks them
	}
	t, err := newTool(def, run, own)
	if err != nil {
		return nil, err
	}
	in.check = t.input
	if len(fills) == 0 {
		return t, nil
	}
	return guard(t, rules{needs: in.needs, fills: fills, types: types, assertFormats: in.inferred, typed: true})
}

// filled returns the fields that are filled with trusted values, in the form that
// [Fill] takes, and their types.
func (in *input) filled(def *Definition) (fills map[string]string, types map[string]reflect.Type, err error) {
	fills, types = map[string]string{}, map[string]reflect.Type{}
	fields := in.shape.fields[in.t]
	for _, need := range in.needs {
		if need == nil {
			continue // newTool refuses it
		}
		name := need.Name()
		if t, ok := fields[name]; ok {
			if !def.Takes(name) {
				return nil, nil, fmt.Errorf("the input schema needs a property %q, for the field that receives the trusted value; models do not see that property", name)
			}
			fills[name], types[name] = name, t
		}
		for field := range fields {
			if field != name && strings.EqualFold(field, name) {
				return nil, nil, fmt.Errorf("the field %q would stay empty: spell its name like the trusted value %q", field, name)
			}
		}
	}
	return fills, types, nil
}

// describe completes the definition of a function that takes in and returns out.
func describe(def *Definition, in, out reflect.Type, opts *Options) (*input, error) {
	if opts == nil {
		opts = &Options{}
	}
	def.Title, def.Hints, def.Exclusive, def.Metadata = opts.Title, opts.Hints, opts.Exclusive, opts.Metadata
	def.InputSchema = opts.InputSchema
	if in.Kind() != reflect.Struct && (in.Kind() != reflect.Map || in.Key().Kind() != reflect.String) {
		return nil, fmt.Errorf("the argument type is %v; it must be a struct or a map with string keys, because arguments are a JSON object", in)
	}
	s, err := shapeOf(in)
	if err != nil {
		return nil, fmt.Errorf("the argument type: %w", err)
	}
	i := &input{t: in, shape: s, needs: opts.Needs}
	if len(def.InputSchema) == 0 {
		if err := i.infer(def); err != nil {
			return nil, fmt.Errorf("no schema for the argument type: %w", err)
		}
	}
	if def.OutputSchema, err = outputSchema(out); err != nil {
		return nil, fmt.Errorf("no schema for the result type: %w", err)
	}
	return i, nil
}

// input decodes arguments into a Go type.
type input struct {
	t     reflect.Type
	shape *shape
	needs []Need
	// inferred means that the schema was inferred from t; formats are assertions
	// then.
	inferred bool
	defaults *jsonschema.Schema // nil if there are none
	check    *checker           // checks arguments after rounding them for the type
}

// infer sets the definition's input schema to the one inferred from the argument
// type.
func (in *input) infer(def *Definition) error {
	inferred, err := in.shape.infer(in.t)
	if err != nil {
		return err
	}
	in.inferred = true
	if hasDefaults(inferred) {
		in.defaults = inferred
	}
	def.InputSchema, err = json.Marshal(inferred)
	return err
}

// take is like decode, but recovers panics of the argument type's methods, such
// as UnmarshalJSON.
func (in *input) take(text json.RawMessage, value, target any) (failure *Failure) {
	defer func() {
		if problem := recover(); problem != nil {
			failure = &Failure{Code: Internal, Message: "The tool was not run: reading its arguments panicked. The reason is in the log of the program that runs it.", Cause: panicOf(problem)}
		}
	}()
	return in.decode(text, value, target)
}

// decode stores the arguments in target, a pointer. value is the parsed text.
func (in *input) decode(text json.RawMessage, value, target any) *Failure {
	if strays := in.shape.strays(in.t, value, nil); len(strays) > 0 {
		return badArguments(arrange(strays))
	}
	if in.shape.rounds {
		if held, changed := in.shape.rounded(in.t, value); changed {
			if faults := in.check.check(held); len(faults) > 0 {
				return badArguments(faults)
			}
		}
	}
	if in.defaults != nil {
		var err error
		value = withDefaults(in.defaults, value)
		if text, err = json.Marshal(value); err != nil {
			return badArguments([]violation{decodeFault(err)})
		}
	}
	err := json.Unmarshal(text, target)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && strings.HasPrefix(mismatch.Value, "number ") {
		// Package json does not accept 3.0 for an int, though JSON Schema considers it an
		// integer.
		plain, encodeErr := json.Marshal(plainIntegers(value))
		if encodeErr != nil {
			return badArguments([]violation{decodeFault(err)})
		}
		reflect.ValueOf(target).Elem().SetZero()
		err = json.Unmarshal(plain, target)
	}
	if err != nil {
		fault := decodeFault(err)
		fault.pointer = pointerOf(in.shape.culprit(in.t, value, nil))
		return badArguments([]violation{fault})
	}
	return nil
}

// decodeFault explains why arguments that fit the schema do not fit the type.
func decodeFault(err error) violation {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return violation{text: textcut.Bytes(printable(err.Error()), maxShown)}
	}
	return violation{text: fmt.Sprintf("%s does not fit into %v", textcut.Bytes(mismatch.Value, maxShown), mismatch.Type)}
}

// plainIntegers returns value with all integers written as digits only.
func plainIntegers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(value)); ok && r.IsInt() {
			return json.Number(r.Num().String())
		}
	case map[string]any:
		for name, member := range value {
			value[name] = plainIntegers(member)
		}
	case []any:
		for i, item := range value {
			value[i] = plainIntegers(item)
		}
	}
	return value
}

var (
	contentType  = reflect.TypeFor[canister.Content]()
	contentsType = reflect.TypeFor[[]canister.Content]()
	outputType   = reflect.TypeFor[Output]()
	nothingType  = reflect.TypeFor[struct{}]()
)

// outputSchema returns the schema of the structured content that a function
// returns, or nil if it returns other content or an interface.
func outputSchema(t reflect.Type) (json.RawMessage, error) {
	switch {
	case t.Kind() == reflect.Pointer && (t.Implements(contentType) || t.Elem() == outputType):
		return nil, fmt.Errorf("content is returned by value: %v, not %v", t.Elem(), t)
	case t.Implements(contentType), t == contentsType, t == outputType, t == nothingType,
		t.Kind() == reflect.Interface, isText(t):
		return nil, nil
	}
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	inferred, err := s.infer(t)
	if err != nil {
		return nil, err
	}
	schema, err := json.Marshal(inferred)
	if string(schema) == "true" {
		schema = nil
	}
	return schema, err
}

// isText reports whether values of a type are encoded as plain strings in JSON.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String && !implements[json.Marshaler](t) && !implements[encoding.TextMarshaler](t)
}

// outputOf converts the result of a function to content. pointer points to the
// result; it is encoded instead, so that package json can call methods with a
// pointer receiver.
func outputOf(result, pointer any) (Output, error) {
	switch result := result.(type) {
	case Output:
		return result, nil
	case []canister.Content:
		return Output{Content: result}, nil
	case canister.Content:
		return Output{Content: []canister.Content{result}}, nil
	case nil, struct{}:
		return Output{}, nil
	}
	v := reflect.ValueOf(result)
	if isText(v.Type()) {
		return Output{Content: canister.Texts(v.String())}, nil
	}
	if v.Kind() == reflect.Map && v.IsNil() && !isOpaque(v.Type()) {
		pointer = struct{}{} // a result must be an object
	}
	var text []byte
	var err error
	if panicked := contain.Call("a method of the result", func() { text, err = jsontext.Encode(pointer) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return Output{}, &Failure{Code: Internal, Message: "The tool ran, but its result cannot be written as JSON.", Cause: err}
	}
	return Output{Content: []canister.Content{canister.StructuredContent{JSON: text}}}, nil
}
