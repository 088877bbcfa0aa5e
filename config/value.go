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
	text  *string // a pointer, so that reflection-based printing shows an address
}

// Plain returns a Value that is shown as it is.
func Plain(text string) Value { return Value{shown: text, text: &text} }

// Hidden returns a Value that is shown as [hidden].
func Hidden(text string) Value { return Value{shown: hiddenText, text: &text} }

// Reveal returns the text itself.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
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
	values *any // a map[string]any, behind what printing does not look behind
}

// NewTable returns a Table of values: strings, bool, int64, float64, []any and
// map[string]any. The map is copied, the values are shared.
func NewTable(values map[string]any) Table {
	if len(values) == 0 {
		return Table{}
	}
	var kept any = maps.Clone(values)
	return Table{values: &kept}
}

// Reveal returns the values; nil when there are none. The map is the caller's.
func (t Table) Reveal() map[string]any {
	if t.values == nil {
		return nil
	}
	values, _ := (*t.values).(map[string]any)
	return maps.Clone(values)
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
