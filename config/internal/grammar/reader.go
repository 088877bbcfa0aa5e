// SPDX-License-Identifier: Apache-2.0

// Package grammar reads the tables of a configuration into Go values, as lists of fields
// define them, and collects what is wrong, with positions.
package grammar

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/internal/suggest"
)

// A Field defines the value of one key of a table. The lists of fields are the whole grammar
// of a configuration. Reading, the search for the most similar key,
// and the test of docs/configuration.md use them.
type Field struct {
	Key string
	Kind
}

// Key returns the field of a key.
func Key(key string, kind Kind) Field { return Field{key, kind} }

// A Kind defines which values are valid and where they are stored.
type Kind struct {
	// Name describes the value in messages, as in "expected a string".
	Name string
	// Read stores the value of n, or reports why it cannot.
	Read func(r *Reader, n *document.Node)
	// Fields are the fields of a table. Within says how its path continues after the key:
	// "" for one table, ".NAME" for tables by name, "[]" for a list.
	Fields []Field
	Within string
}

// Reader reads one document and collects its problems.
type Reader struct {
	Source *document.Source
	Faults *Faults
	expand.Expander
	// Lenient allows unset variables, because the table being read is not used: the
	// server is disabled.
	Lenient bool
	// Ignored, if not nil, collects unknown keys, which then are not problems.
	Ignored *Faults
}

// Table reads the members of n according to fields.
func (r *Reader) Table(n *document.Node, fields []Field) {
	t, ok := n.Value.(*document.Table)
	if !ok {
		r.WrongKind(n, "a table")
		return
	}
	for _, member := range t.Members {
		f := find(fields, member.Key)
		switch {
		case f == nil:
			r.unknown(member, fields)
		case member.Value != nil: // JSON's null counts as missing
			f.Read(r, member)
		}
	}
}

func find(fields []Field, key string) *Field {
	for i := range fields {
		if fields[i].Key == key {
			return &fields[i]
		}
	}
	return nil
}

func (r *Reader) unknown(n *document.Node, fields []Field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	if r.Ignored != nil {
		r.Ignored.Add(FaultAt(r.Source.Of(n), n.KeyAt, n.Path(), "unknown key, ignored"))
		return
	}
	p := r.WrongKey(n, "unknown key")
	switch f := foreign(n.Key, fields); {
	case f == nil:
		p.Nearest = suggest.Key(n.Key, keys)
	case f.advice == "":
		p.Nearest = f.native
	default:
		p.Message += ": " + f.advice
	}
}

// Missing reports that the table n lacks a key.
func (r *Reader) Missing(n *document.Node, key, format string, args ...any) {
	r.Faults.Add(FaultAt(r.Source.Of(n), n.KeyAt, n.Under(key), format, args...))
}

// Wrong reports a problem with the value of n.
func (r *Reader) Wrong(n *document.Node, format string, args ...any) *document.Fault {
	return r.Faults.Add(FaultAt(r.Source.Of(n), n.At, n.Path(), format, args...))
}

// WrongKey reports a problem with n as a whole, at its key.
func (r *Reader) WrongKey(n *document.Node, format string, args ...any) *document.Fault {
	return r.Faults.Add(FaultAt(r.Source.Of(n), n.KeyAt, n.Path(), format, args...))
}

// EmptyLists reports lists of globs in the table n that have no elements, because
// an empty list could be taken for everything and for nothing.
func (r *Reader) EmptyLists(n *document.Node, keys ...string) {
	for _, key := range keys {
		if list, ok := n.Member(key).AsList(); ok && len(list) == 0 {
			r.Wrong(n.Member(key), `expected at least one element; "*" matches everything`)
		}
	}
}

// WrongKind reports that n does not have the expected kind.
func (r *Reader) WrongKind(n *document.Node, kind string) {
	r.Wrong(n, "expected %s, found %s", kind, n.Kind())
}

// Replace expands the variables in the string n.
func (r *Reader) Replace(n *document.Node) (expand.Expansion, bool) {
	text, ok := n.Value.(string)
	if !ok {
		r.WrongKind(n, "a string")
		return expand.Expansion{}, false
	}
	out, errs := r.Expand(text)
	for _, err := range errs {
		if !r.Lenient {
			r.Wrong(n, "%s", err).Err = err
		}
	}
	return out, len(errs) == 0
}
