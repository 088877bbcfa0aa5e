// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/internal/document"
)

// maxProblems limits how many problems are reported.
const maxProblems = 1000

// Faults collects the faults of a configuration, across all its files.
type Faults struct{ list []*document.Fault }

// Add adds p and returns it, so that the caller can set more fields.
func (ps *Faults) Add(p *document.Fault) *document.Fault {
	if len(ps.list) < maxProblems {
		ps.list = append(ps.list, p)
	}
	return p
}

// Tree reads a document, and adds what is wrong with it.
func (ps *Faults) Tree(read func(*document.Source) (*document.Node, []document.Fault), src *document.Source) *document.Node {
	root, faults := read(src)
	for _, f := range faults {
		f.File = src.Name
		ps.Add(&f)
	}
	return root
}

// FaultAt describes a problem at an offset in a file or a flag. key is the path of the
// key, or "".
func FaultAt(src *document.Source, at int, key, format string, args ...any) *document.Fault {
	line, column := src.Position(at)
	return &document.Fault{File: src.Name, Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...)}
}

// Sorted returns the faults by file name, line and column. Faults at the same position keep
// their order.
func (ps *Faults) Sorted() []*document.Fault {
	return slices.SortedStableFunc(slices.Values(ps.list), func(a, b *document.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
