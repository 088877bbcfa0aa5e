// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/suggest"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxMessage bounds the text of an error, in bytes.
const maxMessage = 2 << 10

// failure returns the failure of a program, with the line and the column.
func (r *run) failure(err error) *invoker.Failure {
	at, text := placeOf(err)
	code := invoker.ExecutionFailed
	switch {
	case errors.As(err, new(syntax.Error)), errors.As(err, new(resolve.Error)), errors.As(err, new(resolve.ErrorList)):
		code = invoker.InvalidArguments
	}
	text = strings.Replace(text, "Starlark computation cancelled", "the program was stopped", 1)
	message := textcut.Bytes(strings.ToValidUTF8(text, "\uFFFD"), maxMessage)
	if at.IsValid() {
		message = fmt.Sprintf("Line %d, column %d: %s", at.Line, at.Col, message)
	}
	if name, ok := strings.CutPrefix(text, "undefined: "); ok {
		message += r.meant(name)
	}
	if advice := adviceFor(err, text); advice != "" {
		message += "\n" + advice
	}
	if r.calls > len(r.wanted) {
		message += "\nThe calls that the program made before are not undone."
	}
	failure := invoker.Failf(code, "%s", message)
	if contents := r.withPrinted(message); len(contents) > 1 {
		failure.Content = contents
	}
	return failure
}

// meant returns the name that an undefined one may stand for.
func (r *run) meant(name string) string {
	var known []string
	for _, defined := range slices.Sorted(maps.Keys(r.names)) {
		if !strings.HasPrefix(defined, "$") {
			known = append(known, defined)
		}
	}
	if like := suggest.Name(name, known); like != "" {
		return fmt.Sprintf(" (did you mean %s?)", like)
	}
	return ""
}

// placeOf returns the position and the text of an error.
func placeOf(err error) (syntax.Position, string) {
	var scanned syntax.Error
	var resolved resolve.Error
	var several resolve.ErrorList
	var run *starlark.EvalError
	switch {
	case errors.As(err, &scanned):
		return scanned.Pos, scanned.Msg
	case errors.As(err, &several):
		return several[0].Pos, several[0].Msg
	case errors.As(err, &resolved):
		return resolved.Pos, resolved.Msg
	case errors.As(err, &run):
		for i := range run.CallStack {
			if at := run.CallStack.At(i).Pos; at.Filename() == fileName && at.Line > 0 {
				return at, run.Msg
			}
		}
		return syntax.Position{}, run.Msg
	}
	return syntax.Position{}, err.Error()
}

// advices are what to do about errors whose text has one of these fragments.
var advices = []struct{ fragment, advice string }{
	{"undefined: import", "Starlark has no import: everything there is can be used at once."},
	{"got import", "Starlark has no import: everything there is can be used at once."},
	{"got class", "Starlark has no classes: use functions and dicts."},
	{"got try", "Starlark has no try: write value, error = attempt(function, …)."},
	{"got string literal", `Starlark has no f-strings: write "%s" % value or "{}".format(value).`},
	{"got raise", "Starlark has no raise: write fail(\"…\")."},
	{"undefined: set", "There are no sets: use a dict, or a list without what it has already."},
	{"got '**'", "There is no operator **: multiply."},
	{"undefined: ", "Only the tools, and the functions in the description of this tool, can be used."},
	{"called recursively", "Functions cannot call themselves: use a loop and a list of what is left to do."},
	{"frozen", "Functions that gather runs cannot change values outside, and these stay unchangeable: return what they find, and put it together after gather."},
	{"steps", "Do less in one program: narrow down what the tools return, or return a part."},
	{"took more than", "Do less in one program: narrow down what the tools return, or return a part."},
	{"MB", "Keep only what you need of what the tools return."},
	{"calls", "Split the work into several programs."},
	{"is not available", "Only the functions in the description of this tool can be used."},
}

// adviceFor returns what to do about an error.
func adviceFor(err error, text string) string {
	failed := new(toolError)
	if errors.As(err, &failed) {
		called := textcut.Bytes(failed.name, maxName)
		if functionName(called) != called { // its function can be of another tool
			called = fmt.Sprintf("call, %q", called)
		}
		return "To go on after a failed call, write value, error = attempt(" + called + ", …)."
	}
	for _, a := range advices {
		if strings.Contains(text, a.fragment) {
			return a.advice
		}
	}
	return ""
}
