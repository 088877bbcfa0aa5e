// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/expand"
)

// hiddenText replaces text that must not be shown.
const hiddenText = "[hidden]"

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
	variables []expand.Variable // variables in the text
}

// valueOf returns an expanded text as a Value that is printed as shown.
func valueOf(e expand.Expansion, shown string) Value {
	return Value{shown: shown, held: keep(held{text: e.Text, variables: e.Variables})}
}

// Plain returns a Value that is printed as it is.
func Plain(text string) Value { return Value{shown: text, held: keep(held{text: text})} }

// Hidden returns a Value that is printed as [hidden]. The whole text is a secret, which
// [Assemble] redacts.
func Hidden(text string) Value {
	return Value{shown: hiddenText, held: keep(held{text: text, secret: true})}
}

// Reveal returns the real text.
func (v Value) Reveal() string {
	if v.held == nil {
		return ""
	}
	return (*v.held).text
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
	variables []expand.Variable
}

// NewTable returns a Table of values: strings, bool, int64, float64, []any and
// map[string]any. It copies the map but shares the values.
func NewTable(values map[string]any) Table {
	if len(values) == 0 {
		return Table{}
	}
	return Table{held: keep(heldTable{values: maps.Clone(values)})}
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
