// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"go.starlark.net/starlark"
)

// Name is the name of the tool in its ensemble.
const Name = "run_code"

// Options bound the programs. A field that is 0 has the default.
type Options struct {
	// Steps is how many steps of the interpreter one run may take: 1,000,000. An operation
	// on large values takes more than one.
	Steps int64
	// Bytes is how much memory one run may allocate, as estimated: 64 MB. What is no
	// longer used counts too.
	Bytes int64
	// Time is how long one run may take: 10 seconds. The calls do not run meanwhile.
	Time time.Duration
	// Calls is how many calls a program may make: 200.
	Calls int
	// Text is how long a program may be, in bytes: 32 KiB.
	Text int
	// Without are the names of tools that programs cannot call.
	Without []string
}

func (o *Options) without(name string) bool { return slices.Contains(o.Without, name) }

// Ensemble makes the ensemble of run_code. It belongs in the same roster as the tools that
// programs call. Options may be nil.
func Ensemble(name string, options *Options) *ensemble.Ensemble {
	t := &tool{}
	if options != nil {
		t.options = *options
	}
	t.options.Steps = cmp.Or(t.options.Steps, 1_000_000)
	t.options.Bytes = cmp.Or(t.options.Bytes, 64<<20)
	t.options.Time = cmp.Or(t.options.Time, 10*time.Second)
	t.options.Calls = cmp.Or(t.options.Calls, 200)
	t.options.Text = cmp.Or(t.options.Text, 32<<10)
	t.options.Without = append(slices.Clone(t.options.Without), ensemble.NameFor(name, Name))
	return ensemble.Local(name, t)
}

// tool is run_code.
type tool struct{ options Options }

// description says what a model must know to write programs.
const description = `Run a program that calls tools, and get the value that it returns. Use it when you would call many tools, or pass on what one returned: what the calls return does not reach you, only the value. Every call is approved and recorded like your own.

The language is Starlark, a small Python: def, lambda, if, for, while, comprehensions, % and .format; no import, class, try, f-strings, sets or recursion. There are len, range, sorted, sum, zip and the like, and json.decode and json.encode.
Each tool is a function with its name (with _ for characters such as -), which takes arguments by name: files__read(path="a.txt"). It returns structured output as a dict or list, and otherwise text. call("name", {…}) calls a tool by its name.
gather(function, items) calls the function with each item, and their calls run in parallel; gather([f, g]) runs functions without arguments. Functions in gather return what they find; they cannot change values outside.
A call that fails ends the program. value, error = attempt(function, …) goes on instead: error is None, or has "code" and "message".
End with return value. print(…) shows up to 4 KB. There are no files, no network, no clock and no random numbers.`

var schema = json.RawMessage(`{"type":"object","properties":{"program":{"type":"string","description":"the program"}},"required":["program"],"additionalProperties":false}`)

// Definition implements [invoker.Invoker].
func (t *tool) Definition() *invoker.Definition {
	return &invoker.Definition{
		Name: Name, Title: "Run a program", Description: description, InputSchema: schema,
		Hints: invoker.Hints{ReadOnly: true, Idempotent: true}, // what a program calls is approved by itself
	}
}

// Invoke implements [invoker.Invoker].
func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	if call.Tools == nil {
		return invoker.Output{}, invoker.Failf(invoker.Unavailable, "Programs run only in a conversation, and a program cannot run another one.")
	}
	var arguments struct {
		Program string `json:"program"`
	}
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
		return invoker.Output{}, invoker.Failf(invoker.InvalidArguments, `The arguments must be {"program": "…"}.`)
	}
	if len(arguments.Program) > t.options.Text {
		return invoker.Output{}, invoker.Failf(invoker.InvalidArguments, "The program has %d bytes; at most %d are allowed. Write a shorter one, or several.", len(arguments.Program), t.options.Text)
	}
	r, value, err := execute(ctx, &t.options, call.Tools, arguments.Program)
	if errors.Is(err, errUnmade) {
		for _, w := range r.wanted {
			if err := call.Tools.Request(w.key, w.name, w.arguments); err != nil {
				return invoker.Output{}, invoker.Failf(invoker.Internal, "The program was stopped: %w", err)
			}
		}
		return invoker.Output{}, nil // it is called again
	}
	if err == nil {
		output, failure := r.output(value)
		if failure == nil {
			return output, nil
		}
		err = failure
	}
	return invoker.Output{}, r.failure(err)
}

// output returns what the model receives.
func (r *run) output(value starlark.Value) (invoker.Output, error) {
	text, ok := starlark.AsString(value)
	if !ok {
		var err error
		if text, err = r.encode(value); err != nil {
			return invoker.Output{}, fmt.Errorf("the value that the program returns: %w", err)
		}
	}
	if value == starlark.None {
		text = "The program ended without a value. End it with return value."
	}
	return invoker.Output{Content: r.withPrinted(text)}, nil
}

// withPrinted returns a text and what the program printed.
func (r *run) withPrinted(text string) []canister.Content {
	contents := canister.Texts(text)
	if r.printed.Len() > 0 {
		contents = append(contents, canister.Text("Printed:\n"+r.printed.String()))
	}
	if r.printed.cut {
		contents = append(contents, canister.Text("[What the program printed is longer than 4 KB; the rest was left out.]"))
	}
	return contents
}
