// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrVariable is in the chain of each [Problem] that is about an environment
// variable which is not set.
var ErrVariable = errors.New("the environment variable is not set")

// Error is what is wrong with a configuration, all of it at once. Each
// [*Problem] is in its chain, for errors.As; so are the causes, such as
// [ErrVariable] and fs.ErrNotExist, for errors.Is.
type Error struct {
	// Problems are sorted by file, line and column. There is at least one.
	Problems []*Problem
}

// Error returns the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// Problem is one thing that is wrong, and where. It names keys and variables
// but never quotes a value, which may be a secret.
type Problem struct {
	// File is the name of the file, as given to [Parse] or as the import says.
	File string
	// Line and Column count from 1, the column in characters. Both are 0 when
	// the problem is with the file as a whole.
	Line, Column int
	// Key is the path of the key in question, such as mcp.weather.command[0];
	// empty when the problem is not about a key.
	Key string
	// Message says what is wrong and what was expected.
	Message string
	// Nearest is the right key or value that is most like what was found;
	// empty when none is.
	Nearest string
	// Err is the cause; may be nil.
	Err error
}

// Error returns the problem in the form of a compiler's message:
//
//	consort.toml:3:1: mcp.weather.comand: unknown key; did you mean "command"?
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Message)
	if p.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Nearest)
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// maxProblems bounds how many problems are kept: nobody reads more.
const maxProblems = 1000

// problems collects what is wrong with a configuration, over all its files.
type problems struct{ list []*Problem }

// add keeps p and returns it, so that the caller can say more.
func (ps *problems) add(p *Problem) *Problem {
	if len(ps.list) < maxProblems {
		ps.list = append(ps.list, p)
	}
	return p
}

// err returns what was collected as one error, or nil.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	sortProblems(ps.list)
	return &Error{Problems: ps.list}
}

// sortProblems sorts by position; what stands at the same place stays in the
// order in which it was found. Files stay in the order of their names.
func sortProblems(list []*Problem) {
	slices.SortStableFunc(list, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
