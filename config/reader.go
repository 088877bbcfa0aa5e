// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/internal/suggest"
)

// A field defines the value of one key of a table. The lists of fields, from root.go on,
// are the whole grammar of a configuration. Reading, the search for the most similar key,
// and the test of docs/configuration.md use them.
type field struct {
	key string
	value
}

// A value defines which values are valid and where they are stored.
type value struct {
	// kind describes the value in messages, as in "expected a string".
	kind string
	// read stores the value of n, or reports why it cannot.
	read func(r *reader, n *document.Node)
	// fields are the fields of a table. within says how its path continues after the key:
	// "" for one table, ".NAME" for tables by name, "[]" for a list.
	fields []field
	within string
}

// reader reads one document and collects its problems.
type reader struct {
	source   *document.Source
	problems *problems
	expand.Expander
	// lenient allows unset variables, because the table being read is not used: the
	// server is disabled.
	lenient bool
	// ignored, if not nil, collects unknown keys, which then are not problems.
	ignored *problems
}

// table reads the members of n according to fields.
func (r *reader) table(n *document.Node, fields []field) {
	t, ok := n.Value.(*document.Table)
	if !ok {
		r.wrongKind(n, "a table")
		return
	}
	for _, member := range t.Members {
		f := find(fields, member.Key)
		switch {
		case f == nil:
			r.unknown(member, fields)
		case member.Value != nil: // JSON's null counts as missing
			f.read(r, member)
		}
	}
}

func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

func (r *reader) unknown(n *document.Node, fields []field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if r.ignored != nil {
		r.ignored.add(problemAt(r.source.Of(n), n.KeyAt, n.Path(), "unknown key, ignored"))
		return
	}
	p := r.wrongKey(n, "unknown key")
	switch f := foreign(n.Key, fields); {
	case f == nil:
		p.Nearest = suggest.Key(n.Key, keys)
	case f.advice == "":
		p.Nearest = f.native
	default:
		p.Message += ": " + f.advice
	}
}

// missing reports that the table n lacks a key.
func (r *reader) missing(n *document.Node, key, format string, args ...any) {
	r.problems.add(problemAt(r.source.Of(n), n.KeyAt, n.Under(key), format, args...))
}

// wrong reports a problem with the value of n.
func (r *reader) wrong(n *document.Node, format string, args ...any) *Problem {
	return r.problems.add(problemAt(r.source.Of(n), n.At, n.Path(), format, args...))
}

// wrongKey reports a problem with n as a whole, at its key.
func (r *reader) wrongKey(n *document.Node, format string, args ...any) *Problem {
	return r.problems.add(problemAt(r.source.Of(n), n.KeyAt, n.Path(), format, args...))
}

// wrongKind reports that n does not have the expected kind.
func (r *reader) wrongKind(n *document.Node, kind string) {
	r.wrong(n, "expected %s, found %s", kind, n.Kind())
}

// replace expands the variables in the string n.
func (r *reader) replace(n *document.Node) (expand.Expansion, bool) {
	text, ok := n.Value.(string)
	if !ok {
		r.wrongKind(n, "a string")
		return expand.Expansion{}, false
	}
	out, errs := r.Expand(text)
	for _, err := range errs {
		if !r.lenient {
			r.wrong(n, "%s", err).Err = err
		}
	}
	return out, len(errs) == 0
}
