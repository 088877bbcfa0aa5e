// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/internal/document"
)

// maxFaults limits how many faults are reported.
const maxFaults = 1000

// Faults collects the faults of a configuration, across all its files.
type Faults struct{ list []*document.Fault }

// Add adds a fault and returns it, so that the caller can set more fields.
func (f *Faults) Add(fault *document.Fault) *document.Fault {
	if len(f.list) < maxFaults {
		f.list = append(f.list, fault)
	}
	return fault
}

// Tree reads a document, and adds what is wrong with it.
func (f *Faults) Tree(read func(*document.Source) (*document.Node, []document.Fault), src *document.Source) *document.Node {
	root, faults := read(src)
	for _, fault := range faults {
		fault.File = src.Name
		f.Add(&fault)
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
func (f *Faults) Sorted() []*document.Fault {
	return slices.SortedStableFunc(slices.Values(f.list), func(a, b *document.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
