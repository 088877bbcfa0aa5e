// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/invoker"
	"go.starlark.net/starlark"
)

// run is one run of a program, from its beginning to a call that was not made yet, or to
// its end.
type run struct {
	meter
	options *Options
	tools   invoker.Tools
	names   starlark.StringDict // what the program can name
	printed printed
	scope   scope
	calls   int
	wanted  []request // calls that must be made before the program can go on
}

// scope numbers the calls of a program, or of one function that gather runs. A call has the
// same key in each run, because the program does the same each time.
type scope struct {
	prefix string
	calls  int
}

func (s *scope) key() string {
	s.calls++
	return s.prefix + strconv.Itoa(s.calls)
}

// request is a call to make.
type request struct {
	key, name string
	arguments json.RawMessage
}

// errUnmade ends a run at a call that was not made yet.
var errUnmade = errors.New("the call was not made yet")

// toolError is the failure of a call. [run.attempt] catches it.
type toolError struct {
	name, code, text string
}

// Error implements error.
func (e *toolError) Error() string { return fmt.Sprintf("%s failed: %s: %s", e.name, e.code, e.text) }

// execute runs a program, which returns a value unless it ends at calls that were not made.
func execute(ctx context.Context, options *Options, tools invoker.Tools, text string) (*run, starlark.Value, error) {
	thread := &starlark.Thread{Name: fileName}
	r := &run{meter: meter{thread: thread, left: options.Bytes, bytes: options.Bytes}, options: options, tools: tools}
	thread.Print = r.printed.line
	thread.SetMaxExecutionSteps(uint64(options.Steps))
	thread.OnMaxSteps = func(thread *starlark.Thread) { thread.Cancel(fmt.Sprintf("it took more than %d steps", options.Steps)) }
	r.names = r.defined()
	program, err := compile(text, r.names)
	if err != nil {
		return r, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, options.Time)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { thread.Cancel(fmt.Sprintf("it took more than %v, or the call was cancelled", options.Time)) })
	defer stop()
	globals, err := program.Init(thread, r.names)
	if err != nil {
		return r, nil, err
	}
	value, err := starlark.Call(thread, globals[fileName], nil, nil)
	return r, value, err
}

// defined returns everything that a program can name.
func (r *run) defined() starlark.StringDict {
	defined := starlark.StringDict{}
	r.operations(defined)
	r.builtins(defined)
	defined["call"] = starlark.NewBuiltin("call", r.callTool)
	defined["gather"] = starlark.NewBuiltin("gather", r.gather)
	defined["attempt"] = starlark.NewBuiltin("attempt", r.attempt)
	for _, exact := range []bool{true, false} { // first those whose names are identifiers
		for _, definition := range r.tools.Offered() {
			name := functionName(definition.Name)
			if _, taken := defined[name]; !taken && (name == definition.Name) == exact && !r.options.without(definition.Name) {
				defined[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
					return r.function(definition, args, kwargs)
				})
			}
		}
	}
	return defined
}

// functionName returns the name of a tool as an identifier.
func functionName(tool string) string {
	return strings.Map(func(letter rune) rune {
		if letter == '_' || letter >= '0' && letter <= '9' || letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' {
			return letter
		}
		return '_'
	}, tool)
}

// function is the call of a function that stands for a tool.
func (r *run) function(definition *invoker.Definition, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	name := functionName(definition.Name)
	for _, other := range r.tools.Offered() {
		if other.Name != definition.Name && name != definition.Name && functionName(other.Name) == name && !r.options.without(other.Name) {
			return nil, fmt.Errorf("%s can be %q or %q: write call(%[2]q, {…}) or call(%[3]q, {…})", name, definition.Name, other.Name)
		}
	}
	var arguments starlark.Value
	switch {
	case len(args) == 1 && len(kwargs) == 0 && args[0].Type() == "dict":
		arguments = args[0]
	case len(args) > 0:
		return nil, fmt.Errorf("%s takes its arguments by name: %s", name, parametersOf(definition))
	default:
		dict := starlark.NewDict(len(kwargs))
		for _, pair := range kwargs {
			if err := dict.SetKey(pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
		arguments = dict
		if err := parametersOf(definition).check(name, dict); err != nil {
			return nil, err
		}
	}
	return r.call(definition.Name, arguments)
}

// callTool is call(name, arguments).
func (r *run) callTool(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	arguments := starlark.NewDict(0)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "arguments?", &arguments); err != nil {
		return nil, err
	}
	return r.call(name, arguments)
}

// call returns what a call of a tool returned, or ends the run if it was not made.
func (r *run) call(name string, arguments starlark.Value) (starlark.Value, error) {
	if r.options.without(name) {
		return nil, fmt.Errorf("%s cannot be called by a program", name)
	}
	if len(name) > maxName {
		return nil, fmt.Errorf("there is no tool with a name of %d bytes", len(name))
	}
	text, err := r.encode(arguments)
	if err != nil {
		return nil, err
	}
	if r.calls++; r.calls > r.options.Calls {
		return nil, limitf("the program makes more than %d calls", r.options.Calls)
	}
	asked := request{r.scope.key(), name, json.RawMessage(text)}
	result, made, err := r.tools.Result(asked.key, asked.name, asked.arguments)
	switch {
	case err != nil:
		return nil, &limitError{err.Error()}
	case !made:
		r.wanted = append(r.wanted, asked)
		return nil, errUnmade
	case result.Failed():
		return nil, &toolError{name, result.Code, textOf(result.Content)}
	}
	return r.value(result)
}

// maxName bounds the name of a tool, in bytes.
const maxName = 256

// value returns the result of a call: what its JSON says, if it has structured content,
// and otherwise its text.
func (r *run) value(result canister.Result) (starlark.Value, error) {
	for _, content := range result.Content {
		if structured, ok := content.(canister.StructuredContent); ok {
			if value, err := r.decode(string(structured.JSON)); err == nil || errors.As(err, new(*limitError)) {
				return value, err
			}
		}
	}
	text := textOf(result.Content)
	return starlark.String(text), r.text(int64(len(text)))
}

// textOf returns contents as text. Media are described.
func textOf(contents []canister.Content) string {
	var texts []string
	for _, content := range contents {
		text := "[" + bounds.Describe(content) + "]"
		switch c := content.(type) {
		case canister.TextContent:
			text = c.Text
		case canister.StructuredContent:
			text = string(c.JSON)
		case canister.ResourceContent:
			if c.Blob == nil {
				text = c.Text
			}
		default: // described
		}
		texts = append(texts, text)
	}
	return strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD")
}

// attempt is attempt(function, …): the value and None, or None and what failed.
func (r *run) attempt(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%s takes a function and its arguments", b.Name())
	}
	value, err := starlark.Call(thread, args[0], args[1:], kwargs)
	failed := new(toolError)
	switch {
	case err == nil:
		return starlark.Tuple{value, starlark.None}, nil
	case !errors.As(err, &failed) || errors.Is(err, errUnmade) || errors.As(err, new(*limitError)):
		return nil, err
	}
	failure := starlark.NewDict(2)
	_ = failure.SetKey(starlark.String("code"), starlark.String(failed.code)) // it is not frozen
	_ = failure.SetKey(starlark.String("message"), starlark.String(failed.text))
	return starlark.Tuple{starlark.None, failure}, r.allocate(sizeDict + int64(len(failed.text)))
}

// gather is gather(function, items) or gather(functions). Each function runs up to a call
// that was not made yet; so the calls of all of them are made together.
//
// A function must do the same in each run, whatever the others have done by then. So what
// they have in common is frozen.
func (r *run) gather(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var function starlark.Value
	var items starlark.Iterable
	var err error
	if len(args) == 1 && len(kwargs) == 0 {
		err = starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &items)
	} else {
		err = starlark.UnpackArgs(b.Name(), args, kwargs, "function", &function, "items", &items)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; write gather(function, items), or gather([function, function])", err)
	}
	if err := reads(&r.meter, []starlark.Value{items}); err != nil {
		return nil, err
	}
	var branches []starlark.Value
	for item := range starlark.Elements(items) {
		branches = append(branches, item)
	}
	shared := branches
	if function != nil {
		shared = append([]starlark.Value{function}, branches...)
	}
	if err := r.freeze(shared...); err != nil {
		return nil, err
	}
	return r.branches(thread, function, branches)
}

// branches calls a function with each item, or each item without arguments.
func (r *run) branches(thread *starlark.Thread, function starlark.Value, items []starlark.Value) (starlark.Value, error) {
	outer, wanted := r.scope, len(r.wanted)
	key := outer.key()
	defer func() { r.scope = outer }()
	values, unmade := make([]starlark.Value, len(items)), false
	for i, item := range items {
		r.scope = scope{prefix: key + "." + strconv.Itoa(i+1) + "."}
		called, args := item, starlark.Tuple(nil)
		if function != nil {
			called, args = function, starlark.Tuple{item}
		}
		value, err := starlark.Call(thread, called, args, nil)
		switch {
		case errors.Is(err, errUnmade):
			unmade = true
		case err != nil:
			r.wanted = r.wanted[:wanted] // the program does not go on
			return nil, err
		}
		values[i] = value
	}
	if unmade {
		return nil, errUnmade
	}
	return starlark.NewList(values), r.items(int64(len(values)), sizeItem)
}
