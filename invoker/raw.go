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

	"github.com/consort-go/consort/canister"
)

// RawOptions are what [Raw] can be told beside the definition. The zero value
// is the default.
type RawOptions struct {
	// UncheckedResults accepts results as they come, for servers whose output
	// schema is not to be relied on. The schema stays in the Definition.
	UncheckedResults bool
	// Needs are trusted values that the tool cannot do without; see
	// [Options.Needs]. The function reads them from its context.
	Needs []Need
	// Inline runs the function in the caller's goroutine, which is cheaper, for
	// functions that never end it (runtime.Goexit). A panic stays a failure.
	Inline bool
}

// Raw makes an invoker of a definition and a function that takes its arguments
// as JSON: the way for those who bring their own schema, such as the adapter
// of a protocol. [New] is for Go functions.
//
// Arguments are checked as [New] checks them. The function's context carries
// the call, and so does its second argument, whose Arguments are one JSON
// object that the schema allows, byte for byte as the model wrote it, unless
// members of it were left out because they were null and may not be. A required
// property that has a default may be missing, at any level: whoever made the
// schema fills it in. If the definition has an output schema, a result must have structured content, and
// that must fit (MCP 2025-11-25, server/tools, output schema); if not the
// result becomes a [Failure] with the code [Protocol] which keeps all content
// behind a line that says what is wrong.
//
// An InputSchema that is nil or null becomes {"type":"object"}; any other stays as it
// is. References to other documents are never followed; they allow anything.
// The error tells why a definition cannot be used: it has no name, or a schema
// is not a JSON Schema of objects, refers to what is not there, or is beyond
// the limits of 256 KiB, 10,000 values and a nesting of 200.
//
// A function that panics or ends its goroutine fails with the code [Internal]
// and a [Panic] for the cause. Invoke waits for the function to return, also
// when ctx has ended: the function must heed its context, and those who call
// functions that may not, as the loop of the converse package does, keep their
// own clock.
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

// tool is the one Invoker of this package.
type tool struct {
	def   Definition
	input *checker
	// lenient is asked after input: what it allows is allowed too. Nil for the
	// types of Go functions, and for schemas that leave nothing to it.
	lenient *checker
	output  *checker // nil: results are not checked
	needs   []Need
	closed  reserved // the arguments that nobody may send
	run     function
	// protect runs it so that its panic is a failure.
	protect func(run func() (Output, error)) (Output, error)
}

// function is what a tool runs: arguments is the value of call.Arguments.
type function func(ctx context.Context, call *Call, arguments any) (Output, error)

// rules are what a tool is made by beside its definition and its function.
type rules struct {
	needs            []Need                  // beside those of the definition
	fills            map[string]string       // more arguments that nobody may send, and whose trusted values they are
	withheld         map[string]string       // the same, without those values
	types            map[string]reflect.Type // of what is filled in, if known
	assertFormats    bool
	typed            bool // the function takes a Go value: what is required must be given
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
		def.InputSchema = hide(def.InputSchema, closed.has)
	}
	t := &tool{def: def, needs: needs, closed: closed, run: run, protect: apart}
	if t.input, err = newChecker(def.InputSchema, by.assertFormats); err != nil {
		return nil, fmt.Errorf("the input schema of tool %q cannot be used: %w", def.Name, err)
	}
	if !by.typed {
		t.lenient = newLenientChecker(def.InputSchema, by.assertFormats)
	}
	if !admitsObjects(def.InputSchema) {
		return nil, fmt.Errorf("the input schema of tool %q cannot be used: arguments are an object, and it allows none", def.Name)
	}
	if def.OutputSchema == nil || by.uncheckedResults {
		return t, nil
	}
	if t.output, err = newChecker(def.OutputSchema, by.assertFormats); err != nil {
		return nil, fmt.Errorf("the output schema of tool %q cannot be used: %w", def.Name, err)
	}
	return t, nil
}

// orObject returns the schema of any object in place of none.
func orObject(schema json.RawMessage) json.RawMessage {
	if isNull(schema) {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

// isNull reports whether a JSON text is absent or null.
func isNull(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || string(text) == "null"
}

// admitsObjects reports whether a valid schema is an object whose type, if it
// names one, can be "object".
func admitsObjects(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return false
	}
	switch t := root["type"].(type) {
	case string:
		return t == "object"
	case []any:
		for _, name := range t {
			if name == "object" {
				return true
			}
		}
		return false
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

// arguments parses and checks the arguments of a call, and returns them as the
// function gets them.
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

// check returns what is wrong with arguments.
func (t *tool) check(value any) []violation {
	faults := t.input.check(value)
	if len(faults) > 0 && t.lenient != nil {
		return t.lenient.check(value)
	}
	return faults
}

// withoutNulls leaves out the members whose null is wrong: models write null for
// what they do not want to give. Deeper down null may be data, such as that of a
// filter, and stays. It returns the arguments without them and what is still
// wrong; without is nil if there are none.
func (t *tool) withoutNulls(object map[string]any, faults []violation) (bare json.RawMessage, without map[string]any, left []violation) {
	wrong := make(map[string]violation, len(faults))
	for _, fault := range faults {
		wrong[fault.pointer] = fault
	}
	without = maps.Clone(object)
	maps.DeleteFunc(without, func(name string, value any) bool {
		_, bad := wrong[pointerOf([]string{name})]
		return value == nil && bad
	})
	if len(without) == len(object) {
		return nil, nil, nil
	}
	left = t.check(without)
	for i, fault := range left {
		if null, ok := wrong[fault.pointer]; ok {
			left[i] = null // it is required: its null is what is wrong
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

// checkResult holds all structured content against the output schema.
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
		return []violation{{text: "has no structured content, which the schema calls for"}}
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

// forgedArguments is the failure of arguments that name trusted values. What
// else is wrong with them is reported too.
func forgedArguments(forged *Forged, violations, faults []violation) *Failure {
	for _, fault := range faults {
		if !slices.ContainsFunc(violations, func(v violation) bool { return v.pointer == fault.pointer }) {
			violations = append(violations, fault)
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

// notStarted is the failure of a call whose context had ended before it began.
func notStarted(err error) *Failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Code: Timeout, Message: "The time was over before the tool was called. Nothing was done.", Retryable: true, Cause: err}
	}
	return &Failure{Code: Canceled, Message: "The call was interrupted before it began. Nothing was done.", Retryable: true, Cause: err}
}
