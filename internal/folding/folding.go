// SPDX-License-Identifier: Apache-2.0

// Package folding describes searches and programs in one line: the tools that a search
// found, and the calls that a program made.
package folding

import (
	"fmt"
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
	text := display.Count(t.calls, "call")
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

// Found returns the tools that a successful call of find_tools has found, in one line that is safe to
// print on a terminal, such as "2 found: files__read, files__list". It reports false for
// other calls, and for a result that is not of Consort's find_tools: servers may have a tool of
// that name.
func Found(name string, result canister.Result) (string, bool) {
	if !isOf(name, findcall.FindName) || result.Failed() {
		return "", false
	}
	text := texts(result.Content)
	names := findcall.Names(text)
	switch {
	case len(names) > 0:
	case strings.HasPrefix(text, findcall.NoneFound):
		return "nothing found", true
	default:
		return "", false
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

// Outcome returns the calls of a program, which made some, with the code of its failure if it failed.
func Outcome(tally string, result canister.Result) string {
	if result.Failed() {
		return "failed with " + display.Line(result.Code) + " after " + tally
	}
	return tally
}

// isOf reports whether a name is that of a tool, in an ensemble with any name.
func isOf(name, tool string) bool { return name == tool || strings.HasSuffix(name, "__"+tool) }
