// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/expand"
)

// ErrVariable is in the chain of each [Problem] about an environment variable that is not
// set.
var ErrVariable = expand.ErrNotSet

// Error reports all problems of a configuration. Its chain contains each [*Problem], for
// errors.As, and the causes, such as [ErrVariable] and fs.ErrNotExist, for errors.Is.
type Error struct {
	// Problems are sorted by file, line and column. There is at least one.
	Problems []*Problem
}

// Error returns the problems, one per line.
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

// Problem is one error in a configuration, with its position. It names keys and variables
// but never quotes a value, which may be a secret.
type Problem struct {
	// File is the name of the file, as passed to [Parse] or as written in the import, or
	// the flag that sets the key, such as --set model.temperature.
	File string
	// Line and Column count from 1; Column counts characters. Both are 0 if the problem
	// concerns the file as a whole, or a flag.
	Line, Column int
	// Key is the path of the key, such as mcp.weather.command[0]; empty if the problem is
	// not about a key.
	Key string
	// Message describes the problem and what was expected.
	Message string
	// Nearest is the valid key or value that is most similar to the one found; empty if
	// none is similar.
	Nearest string
	// Err is the cause; may be nil.
	Err error
}

// Error formats the problem like a compiler message:
//
//	consort.toml:3:1: mcp.weather.comand: unknown key; did you mean "command"?
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Key != "" && !strings.HasSuffix(p.File, " "+p.Key) { // not again after --set KEY
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

// errorOf returns the collected faults as one error, or nil.
func errorOf(found *grammar.Faults) error {
	if list := problemsOf(found); len(list) > 0 {
		return &Error{Problems: list}
	}
	return nil
}

func problemsOf(found *grammar.Faults) []*Problem {
	var list []*Problem
	for _, fault := range found.Sorted() {
		list = append(list, (*Problem)(fault))
	}
	return list
}
