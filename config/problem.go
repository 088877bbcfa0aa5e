// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/document"
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

// maxProblems limits how many problems are reported.
const maxProblems = 1000

// problems collects the problems of a configuration, across all its files.
type problems struct{ list []*Problem }

// add adds p and returns it, so that the caller can set more fields.
func (ps *problems) add(p *Problem) *Problem {
	if len(ps.list) < maxProblems {
		ps.list = append(ps.list, p)
	}
	return p
}

// tree reads a document, and adds what is wrong with it.
func (ps *problems) tree(read func(*document.Source) (*document.Node, []document.Fault), src *document.Source) *document.Node {
	root, faults := read(src)
	for _, f := range faults {
		ps.add(&Problem{File: src.Name, Line: f.Line, Column: f.Column, Key: f.Key, Message: f.Message})
	}
	return root
}

// problemAt describes a problem at an offset in a file or a flag. key is the path of the
// key, or "".
func problemAt(src *document.Source, at int, key, format string, args ...any) *Problem {
	line, column := src.Position(at)
	return &Problem{File: src.Name, Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...)}
}

// err returns the collected problems as one error, or nil.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	sortProblems(ps.list)
	return &Error{Problems: ps.list}
}

// sortProblems sorts by file name, line and column. Problems at the same position keep
// their order.
func sortProblems(list []*Problem) {
	slices.SortStableFunc(list, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
