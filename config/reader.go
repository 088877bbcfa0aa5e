// SPDX-License-Identifier: Apache-2.0

package config

import (
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
	read func(r *reader, n *node)
	// fields are the fields of a table. within says how its path continues after the key:
	// "" for one table, ".NAME" for tables by name, "[]" for a list.
	fields []field
	within string
}

// reader reads one document and collects its problems.
type reader struct {
	source   *source
	problems *problems
	expand.Expander
	// lenient allows unset variables, because the table being read is not used: the
	// server is disabled.
	lenient bool
	// ignored, if not nil, collects unknown keys, which then are not problems.
	ignored *problems
}

// table reads the members of n according to fields.
func (r *reader) table(n *node, fields []field) {
	t, ok := n.value.(*table)
	if !ok {
		r.wrongKind(n, "a table")
		return
	}
	for _, member := range t.members {
		f := find(fields, member.key)
		switch {
		case f == nil:
			r.unknown(member, fields)
		case member.value != nil: // JSON's null counts as missing
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

func (r *reader) unknown(n *node, fields []field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if r.ignored != nil {
		r.ignored.add(problemAt(r.source.of(n), n.keyAt, n.path(), "unknown key, ignored"))
		return
	}
	p := r.wrongKey(n, "unknown key")
	switch f := foreign(n.key, fields); {
	case f == nil:
		p.Nearest = suggest.Key(n.key, keys)
	case f.advice == "":
		p.Nearest = f.native
	default:
		p.Message += ": " + f.advice
	}
}

// missing reports that the table n lacks a key.
func (r *reader) missing(n *node, key, format string, args ...any) {
	r.problems.add(problemAt(r.source.of(n), n.keyAt, n.under(key), format, args...))
}

// wrong reports a problem with the value of n.
func (r *reader) wrong(n *node, format string, args ...any) *Problem {
	return r.problems.add(problemAt(r.source.of(n), n.at, n.path(), format, args...))
}

// wrongKey reports a problem with n as a whole, at its key.
func (r *reader) wrongKey(n *node, format string, args ...any) *Problem {
	return r.problems.add(problemAt(r.source.of(n), n.keyAt, n.path(), format, args...))
}

// wrongKind reports that n does not have the expected kind.
func (r *reader) wrongKind(n *node, kind string) {
	r.wrong(n, "expected %s, found %s", kind, n.kind())
}

// replace expands the variables in the string n.
func (r *reader) replace(n *node) (expand.Expansion, bool) {
	text, ok := n.value.(string)
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
