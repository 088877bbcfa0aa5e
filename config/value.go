// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hiddenText stands for what must not be shown.
const hiddenText = "[hidden]"

// Value is a string that can hold a secret. Printing it, in any way, and
// writing it as JSON shows what stands in the file, such as ${HOST}, or
// [hidden] where the file itself may hold the secret; only [Value.Reveal]
// gives the text. The zero Value is the empty string.
type Value struct {
	shown string
	held  behind[held]
}

// behind is where a value is kept that must not be printed. Printing follows a
// pointer to a struct or a map, but it does not follow two. The zero behind is
// nil.
type behind[T any] **T

func keep[T any](value T) behind[T] {
	pointer := &value
	return &pointer
}

// held is a text and what must not be shown of it.
type held struct {
	text      string
	secret    bool       // all of it
	variables []variable // those that stand in it
}

// variable is what an environment variable stood for.
type variable struct{ name, text string }

// Plain returns a Value that is shown as it is.
func Plain(text string) Value { return Value{shown: text, held: keep(held{text: text})} }

// Hidden returns a Value that is shown as [hidden]. All of its text is a
// secret, which [Assemble] takes out of whatever is shown.
func Hidden(text string) Value {
	return Value{shown: hiddenText, held: keep(held{text: text, secret: true})}
}

// Reveal returns the text itself.
func (v Value) Reveal() string {
	if v.held == nil {
		return ""
	}
	return (*v.held).text
}

// String returns the form that may be shown.
func (v Value) String() string { return v.shown }

// Format writes the form that may be shown, whatever the verb; %q and %#v
// quote it.
func (v Value) Format(state fmt.State, verb rune) { format(state, verb, v.shown) }

// MarshalText returns the form that may be shown.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.shown), nil }

// Table is a free table: keys and values that mean something to others only,
// such as a server's settings. Printing it and writing it as JSON shows its
// keys, not its values, which can be secrets. The zero Table is empty.
type Table struct {
	held behind[heldTable]
}

// heldTable is a table and the variables that stand in it.
type heldTable struct {
	values    map[string]any
	variables []variable
}

// NewTable returns a Table of values: strings, bool, int64, float64, []any and
// map[string]any. The map is copied, the values are shared.
func NewTable(values map[string]any) Table {
	if len(values) == 0 {
		return Table{}
	}
	return Table{held: keep(heldTable{values: maps.Clone(values)})}
}

// Reveal returns the values; nil when there are none. The map is the caller's.
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
