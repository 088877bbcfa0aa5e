// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
)

// RawOptions are the optional settings of [Raw]. The zero value is the default.
type RawOptions struct {
	// UncheckedResults accepts results without checking them, for servers whose
	// output schema is unreliable. The schema stays in the Definition.
	UncheckedResults bool
	// Needs are the trusted values that the tool requires; see [Options.Needs]. The
	// function reads them from its context.
	Needs []Need
	// Inline runs the function in the caller's goroutine, which is cheaper. The
	// function must never call runtime.Goexit. A panic is still turned into a
	// failure.
	Inline bool
}

// Raw makes an invoker from a definition and a function that takes its arguments
// as JSON. It is for callers that bring their own schema, such as a protocol
// adapter. [New] is for Go functions.
//
// Arguments are checked as by [New], but formats are annotations, and a pattern that Go
// cannot compile, or that is too large, matches everything. The function's context
// carries the call, which is also its second argument. The call's Arguments are one JSON
// object that the schema allows, byte for byte as the model wrote it. If top-level
// members are null where the schema forbids null, they are left out, and the object is
// encoded anew. A required property that
// has a default may be missing, at any level: the author of the schema fills it
// in. If the definition has an output schema, a result must have structured
// content that fits it (MCP 2025-11-25, server/tools, output schema). Otherwise
// the result becomes a [Failure] with the code [Protocol], whose Content is a
// description of the violations followed by all content of the result.
//
// An InputSchema that is nil or null becomes {"type":"object"}; any other is kept
// as it is, except for arguments that only the program may set. References to other
// documents are never followed; they allow anything, as does a schema in an unknown
// dialect that cannot be read as a known one. Raw returns an error if the definition
// cannot be used: it has no name, the input schema allows no objects, or a schema is not
// valid, has a reference to a missing part of itself, or exceeds the limits of 256 KiB,
// 10,000 values and a nesting of 200. A check that takes 200,000 steps or two seconds
// ends in a violation.
//
// A function that panics or ends its goroutine fails with the code [Internal] and
// a [Panic] as the cause. Invoke waits for the function to return, even after ctx
// has ended: the function must watch its context. Callers of functions that might
// not do so need their own timer, as package converse has one.
func Raw(def Definition, fn func(context.Context, *Call) (Output, error), opts *RawOptions) (Invoker, error) {
	if fn == nil {
		return nil, fmt.Errorf("tool %q has no function", def.Name)
	}
	if opts == nil {
		opts = &RawOptions{}
	}
	run := func(ctx context.Context, call *Call, _ any) (Output, error) { return fn(ctx, call) }
	t, err := newTool(def, run, rules{needs: opts.Needs, uncheckedResults: opts.UncheckedResults})
	if err != nil {
		return nil, err
	}
	if opts.Inline {
		t.protect = inline
	}
	return t, nil
}

// tool is the only Invoker implementation of this package.
type tool struct {
	def   Definition
	input *checker
	// lenient is consulted after input and allows more arguments. It is nil for the
	// types of Go functions, and for schemas that it would not relax.
	lenient *checker
	output  *checker // nil if results are not checked
	needs   []Need
	closed  reserved // the arguments that callers may not send
	run     function
	// protect runs the function and turns its panic into a failure.
	protect func(run func() (Output, error)) (Output, error)
}

// function is the function of a tool; arguments is the decoded value of
// call.Arguments.
type function func(ctx context.Context, call *Call, arguments any) (Output, error)

// rules are the settings of a tool in addition to its definition and function.
type rules struct {
	needs            []Need                  // in addition to the needs of the definition
	fills            map[string]string       // more arguments that callers may not send, and the names of their trusted values
	withheld         map[string]string       // the same, but the values are not required
	types            map[string]reflect.Type // the types of the arguments that are filled in, if known
	assertFormats    bool
	typed            bool // the function takes a Go value, so required members must be given
	uncheckedResults bool
}

func newTool(def Definition, run function, by rules) (*tool, error) {
	if def.Name == "" {
		return nil, errors.New("a tool needs a name")
	}
	needs, err := needsOf(def.Needs, by.needs)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", def.Name, err)
	}
	def.Needs = namesOf(needs)
	closed := reserved{}
	for _, name := range def.Needs {
		closed[name] = name
	}
	maps.Copy(closed, by.withheld)
	maps.Copy(closed, by.fills)
	if isNull(def.OutputSchema) {
		def.OutputSchema = nil
	}
	def.InputSchema, def.OutputSchema = bytes.Clone(orObject(def.InputSchema)), bytes.Clone(def.OutputSchema)
	if len(closed) > 0 {
		var ok bool
		if def.InputSchema, ok = hide(def.InputSchema, closed.has); !ok {
			return nil, fmt.Errorf("the input schema of tool %q cannot be used: it combines more than %d schemas for the arguments, or nests them too deeply; the arguments that callers may not send cannot be removed from it", def.Name, maxPlaces)
		}
	}
	t := &tool{def: def, needs: needs, closed: closed, run: run, protect: apart}
	if t.input, err = newChecker(def.InputSchema, by.assertFormats); err != nil {
		return nil, fmt.Errorf("the input schema of tool %q cannot be used: %w", def.Name, err)
	}
	if !by.typed {
		t.lenient = newLenientChecker(def.InputSchema, by.assertFormats)
	}
	if !admitsObjects(def.InputSchema) {
		return nil, fmt.Errorf("the input schema of tool %q cannot be used: arguments are an object, and the schema allows none", def.Name)
	}
	if def.OutputSchema == nil || by.uncheckedResults {
		return t, nil
	}
	if t.output, err = newChecker(def.OutputSchema, by.assertFormats); err != nil {
		return nil, fmt.Errorf("the output schema of tool %q cannot be used: %w", def.Name, err)
	}
	return t, nil
}

// orObject returns schema, or one that allows any object if schema is nil or
// null.
func orObject(schema json.RawMessage) json.RawMessage {
	if isNull(schema) {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

// isNull reports whether a JSON text is empty or null.
func isNull(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || string(text) == "null"
}

// admitsObjects reports whether a valid schema is an object whose type, if
// present, allows "object".
func admitsObjects(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return false
	}
	switch t := root["type"].(type) {
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return true
}

func (t *tool) Definition() *Definition { return &t.def }

func (t *tool) Invoke(ctx context.Context, call *Call) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, notStarted(err)
	}
	if failure := lacking(ctx, t.needs); failure != nil {
		return Output{}, failure
	}
	own := Call{}
	if call != nil {
		own = *call
	}
	if isNull(own.Arguments) {
		own.Arguments = json.RawMessage(`{}`)
	}
	forged, violations := t.closed.forged(own.Arguments)
	text, arguments, faults := t.arguments(own.Arguments)
	if forged != nil {
		return Output{}, forgedArguments(forged, violations, faults)
	}
	if len(faults) > 0 {
		return Output{}, badArguments(faults)
	}
	own.Arguments = text
	ctx = WithCall(ctx, &own)
	output, err := t.protect(func() (Output, error) { return t.run(ctx, &own, arguments) })
	if err != nil {
		return Output{}, err
	}
	if t.output != nil {
		if violations := t.checkResult(output.Content); len(violations) > 0 {
			return Output{}, badResult(violations, output)
		}
	}
	return output, nil
}

// arguments parses and checks the arguments of a call, and returns them in the
// form that the function receives.
func (t *tool) arguments(text json.RawMessage) (json.RawMessage, any, []violation) {
	value, _, faults := parse(text)
	if len(faults) > 0 {
		return text, nil, faults
	}
	object, ok := value.(map[string]any)
	if !ok {
		return text, nil, []violation{{text: subject(value) + " is not an object; write them as a JSON object"}}
	}
	faults = t.check(value)
	if len(faults) == 0 {
		return text, value, nil
	}
	bare, without, left := t.withoutNulls(object, faults)
	switch {
	case without == nil:
		return text, value, faults
	case len(left) > 0:
		return text, value, left
	}
	return bare, without, nil
}

// check returns the violations of the schema by the arguments.
func (t *tool) check(value any) []violation {
	faults := t.input.check(value)
	if len(faults) > 0 && t.lenient != nil {
		return t.lenient.check(value)
	}
	return faults
}

// withoutNulls removes the members whose null is a violation, because models
// write null for values that they do not want to give. Nested nulls may be data,
// for example in a filter, and stay. It returns the remaining arguments and their
// violations; without is nil if nothing was removed.
func (t *tool) withoutNulls(object map[string]any, faults []violation) (bare json.RawMessage, without map[string]any, left []violation) {
	wrong := make(map[string]violation, len(faults))
	for _, fault := range faults {
		if strings.LastIndexByte(fault.pointer, '/') == 0 {
			for _, name := range fault.all {
				if pointer := pointerOf([]string{name}); object[name] == nil && wrong[pointer].text == "" {
					wrong[pointer] = violation{pointer: pointer, text: fault.text}
				}
			}
		}
		wrong[fault.pointer] = fault
	}
	without, nulls := maps.Clone(object), map[string]violation{}
	maps.DeleteFunc(without, func(name string, value any) bool {
		if value != nil {
			return false
		}
		pointer := pointerOf([]string{name})
		fault, bad := wrong[pointer]
		if bad {
			nulls[pointer] = fault
		}
		return bad
	})
	if len(without) == len(object) {
		return nil, nil, nil
	}
	left = t.check(without)
	for i, fault := range left {
		if null, ok := nulls[fault.pointer]; ok {
			left[i] = null // required, so the violation is its null
		}
	}
	if len(left) > 0 {
		return nil, without, left
	}
	bare, err := json.Marshal(without)
	if err != nil {
		return nil, nil, nil
	}
	return bare, without, nil
}

// checkResult checks all structured content against the output schema.
func (t *tool) checkResult(contents []canister.Content) []violation {
	found := false
	var violations []violation
	for _, content := range contents {
		structured, ok := content.(canister.StructuredContent)
		if !ok {
			continue
		}
		found = true
		value, _, faults := parse(structured.JSON)
		if len(faults) == 0 {
			faults = t.output.check(value)
		}
		violations = append(violations, faults...)
	}
	if !found {
		return []violation{{text: "has no structured content, which the schema requires"}}
	}
	return violations
}

func badArguments(violations []violation) *Failure {
	return &Failure{
		Code:    InvalidArguments,
		Message: "The arguments do not fit the tool's input schema:" + report("arguments", violations),
		Pointer: violations[0].pointer,
	}
}

// forgedArguments returns the failure for arguments that name trusted values. It
// also reports all other violations.
func forgedArguments(forged *Forged, violations, faults []violation) *Failure {
	seen := map[string]bool{}
	for _, v := range violations {
		seen[v.pointer] = true
	}
	for _, fault := range faults {
		if !seen[fault.pointer] {
			violations, seen[fault.pointer] = append(violations, fault), true
		}
	}
	failure := badArguments(violations)
	failure.Cause = forged
	return failure
}

func badResult(violations []violation, output Output) *Failure {
	message := "The result does not fit the tool's output schema:" + report("result", violations)
	content := []canister.Content{canister.Text(message)}
	return &Failure{
		Code:     Protocol,
		Message:  message,
		Content:  append(content, output.Content...),
		Metadata: output.Metadata,
	}
}

// notStarted returns the failure for a call whose context ended before the call
// began.
func notStarted(err error) *Failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Code: Timeout, Message: "The time limit passed before the tool was called. Nothing was done.", Retryable: true, Cause: err}
	}
	return &Failure{Code: Canceled, Message: "The call was interrupted before it began. Nothing was done.", Retryable: true, Cause: err}
}
