// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/findcall"
)

// Tally counts the calls that a program has made. The zero value has none.
type Tally struct {
	names  []string // of the tools, in the order of their first calls
	times  map[string]int
	calls  int
	failed int
}

// Add counts a call that ended.
func (t *Tally) Add(name string, failed bool) {
	if t.times == nil {
		t.times = map[string]int{}
	}
	if t.times[name]++; t.times[name] == 1 {
		t.names = append(t.names, name)
	}
	if t.calls++; failed {
		t.failed++
	}
}

// String returns the calls in one line that is safe to print on a terminal, such as "3 calls,
// 1 failed: files__read 2 times, files__write"; empty without calls.
func (t *Tally) String() string {
	if t == nil || t.calls == 0 {
		return ""
	}
	text := Count(t.calls, "call")
	if t.failed > 0 {
		text += fmt.Sprintf(", %d failed", t.failed)
	}
	var tools []string
	for _, name := range t.names {
		tool := display.Line(name)
		if n := t.times[name]; n > 1 {
			tool += fmt.Sprintf(" %d times", n)
		}
		tools = append(tools, tool)
	}
	return text + ": " + strings.Join(tools, ", ")
}

// Count returns a number of things, such as "1 call" and "2 calls".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Found returns what a successful call of find_tools has found in one line that is safe to
// print on a terminal, such as "2 found: files__read, files__list". It reports false for
// other calls.
func Found(name string, result canister.Result) (string, bool) {
	if !isOf(name, findcall.FindName) || result.Failed() {
		return "", false
	}
	names := findcall.Names(texts(result.Content))
	if len(names) == 0 {
		return "nothing found", true
	}
	for i, one := range names {
		names[i] = display.Line(one)
	}
	return fmt.Sprintf("%d found: %s", len(names), strings.Join(names, ", ")), true
}

func texts(contents []canister.Content) string {
	var b strings.Builder
	for _, one := range contents {
		if text, ok := one.(canister.TextContent); ok {
			b.WriteString(text.Text + "\n")
		}
	}
	return b.String()
}

// Tally counts the calls of a program that have results.
func (e Entry) Tally() *Tally {
	t := &Tally{}
	for _, inner := range e.Calls {
		if result, ok := inner.Result.Canister.(canister.Result); ok {
			t.Add(inner.Canister.(canister.Invocation).Name, result.Failed())
		}
	}
	return t
}

// Folded returns what a search or a program did in one line that is safe to print on a
// terminal, or "" for other calls and for calls without a result.
func (e Entry) Folded() string {
	result, ok := e.Result.Canister.(canister.Result)
	if !ok {
		return ""
	}
	name := e.Canister.(canister.Invocation).Name
	if found, ok := Found(name, result); ok {
		return found
	}
	if tally := e.Tally().String(); tally != "" || isOf(name, programName) {
		return Outcome(tally, result)
	}
	return ""
}

// Outcome returns what a program did: the calls of its tally, and how it ended.
func Outcome(tally string, result canister.Result) string {
	text := cmp.Or(tally, "no calls")
	if result.Failed() {
		return "failed with " + display.Line(result.Code) + " after " + text
	}
	return text
}

// programName is runcode.Name. Package runcode brings its interpreter.
const programName = "run_code"

// isOf reports whether a name is that of a tool, in an ensemble with any name.
func isOf(name, tool string) bool { return name == tool || strings.HasSuffix(name, "__"+tool) }

// of returns the call with an ID among calls and the calls that they made.
func (s *calls) of(invocation string) *Entry {
	return entryOf(s.entries, invocation)
}

func entryOf(entries []Entry, invocation string) *Entry {
	for i := range slices.Backward(entries) {
		if entries[i].Header().ID == invocation {
			return &entries[i]
		}
		if inner := entryOf(entries[i].Calls, invocation); inner != nil {
			return inner
		}
	}
	return nil
}
