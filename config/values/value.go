// SPDX-License-Identifier: Apache-2.0

// Package values has the strings and tables of a configuration that can contain secrets.
// Printing one, with any verb or as JSON, does not show the secrets.
package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/redact"
)

// Value is a string that can contain a secret. Printing it, in any way, and encoding it
// as JSON shows the text in the file, such as ${HOST}, or [hidden] if the file itself may
// contain the secret. Only [Value.Reveal] returns the real text. The zero Value is the
// empty string.
type Value struct {
	shown string
	held  hidden[held]
}

// hidden holds a value that must not be printed. Printing follows one pointer to a struct
// or a map, but not two. The zero value is nil.
type hidden[T any] **T

func keep[T any](value T) hidden[T] {
	pointer := &value
	return &pointer
}

// held is a text with its secrets.
type held struct {
	text      string
	secret    bool              // the whole text is secret
	variables map[string]string // the environment variables in the text
}

// New returns a Value that is printed as shown. variables are the environment variables that
// the text contains, with their values; it may be nil.
func New(text, shown string, variables map[string]string) Value {
	return Value{shown: shown, held: keep(held{text: text, variables: variables})}
}

// Plain returns a Value that is printed as it is.
func Plain(text string) Value { return New(text, text, nil) }

// Hidden returns a Value that is printed as [hidden]. The whole text is a secret.
func Hidden(text string) Value {
	return Value{shown: "[hidden]", held: keep(held{text: text, secret: true})}
}

// Reveal returns the real text.
func (v Value) Reveal() string {
	if v.held == nil {
		return ""
	}
	return (*v.held).text
}

// Secrets returns the parts of the text that must not be shown: the values of the
// environment variables except those that isPublic reports, and all of a text made by
// [Hidden].
func (v Value) Secrets(isPublic func(variable string) bool) []string {
	if v.held == nil {
		return nil
	}
	found := secretVariables((*v.held).variables, isPublic)
	if (*v.held).secret {
		found = append(found, redact.Credential((*v.held).text)...)
	}
	return found
}

func secretVariables(variables map[string]string, isPublic func(variable string) bool) []string {
	var found []string
	for name, text := range variables {
		if !isPublic(name) {
			found = append(found, text)
		}
	}
	return found
}

// String returns the printable form.
func (v Value) String() string { return v.shown }

// Format writes the printable form, whatever the verb; %q and %#v quote it.
func (v Value) Format(state fmt.State, verb rune) { format(state, verb, v.shown) }

// MarshalText returns the printable form.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.shown), nil }

// Table is a free-form table: keys and values that are interpreted elsewhere, such as a
// server's settings. Printing it and encoding it as JSON shows its keys but not its
// values, which can be secrets. The zero Table is empty.
type Table struct {
	held hidden[heldTable]
}

// heldTable is a table and the variables in it.
type heldTable struct {
	values    map[string]any
	variables map[string]string
}

// NewTable returns a Table of values: strings, bool, int64, float64, []any and
// map[string]any. It copies the map but shares the values. variables are the environment
// variables that the strings contain, with their values; it may be nil.
func NewTable(values map[string]any, variables map[string]string) Table {
	if len(values) == 0 {
		return Table{}
	}
	return Table{held: keep(heldTable{values: maps.Clone(values), variables: variables})}
}

// Secrets returns the parts of the values that must not be shown: the values of the
// environment variables except those that isPublic reports, and the members whose names
// suggest a secret.
func (t Table) Secrets(isPublic func(variable string) bool) []string {
	if t.held == nil {
		return nil
	}
	return append(secretVariables((*t.held).variables, isPublic), redact.Members((*t.held).values)...)
}

// Reveal returns the values; nil if there are none. The caller may change the map.
func (t Table) Reveal() map[string]any {
	if t.held == nil {
		return nil
	}
	return maps.Clone((*t.held).values)
}

// String returns the keys, sorted.
func (t Table) String() string {
	return "{" + strings.Join(slices.Sorted(maps.Keys(t.Reveal())), ", ") + "}"
}

// Format writes the keys, whatever the verb; %q and %#v quote them.
func (t Table) Format(state fmt.State, verb rune) { format(state, verb, t.String()) }

// MarshalText returns the keys.
func (t Table) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func format(state fmt.State, verb rune, shown string) {
	if verb == 'q' || verb == 'v' && state.Flag('#') {
		fmt.Fprintf(state, "%q", shown)
		return
	}
	fmt.Fprint(state, shown)
}
