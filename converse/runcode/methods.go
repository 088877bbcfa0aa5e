// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/suggest"
	"go.starlark.net/starlark"
)

// A method checks what a call of a method may cost, before it is made. The result of a
// method that makes a text is charged after it is made.
type method func(m *meter, of starlark.Value, args []starlark.Value) error

// free is for methods whose cost is bounded by the length of a string, which is.
func free(m *meter, of starlark.Value, args []starlark.Value) error {
	_, err := m.measure(append(args, of)...)
	return err
}

// methods are the methods of each type that a program may call.
var methods = map[string]map[string]method{
	"string": {
		"capitalize": makesText, "count": free, "endswith": free, "find": free, "format": formatCost, "index": free,
		"isalnum": free, "isalpha": free, "isdigit": free, "islower": free, "isspace": free, "istitle": free, "isupper": free,
		"join": joinCost, "lower": makesText, "lstrip": stripCost, "partition": free, "removeprefix": free, "removesuffix": free,
		"replace": replaceCost, "rfind": free, "rindex": free, "rpartition": free, "rsplit": splitCost, "rstrip": stripCost,
		"split": splitCost, "splitlines": splitCost, "startswith": free, "strip": stripCost, "title": makesText, "upper": makesText,
		"elems": free,
	},
	"list": {
		"append": itemCost(2 * sizeItem), "clear": itemCost(0), "extend": extendCost, "index": free, "insert": moveCost(2 * sizeItem), "pop": moveCost(0), "remove": free,
	},
	"dict": {
		"clear": itemCost(0), "get": keyCost(0), "items": copyCost(3 * sizeItem), "keys": copyCost(sizeItem), "pop": keyCost(0),
		"popitem": itemCost(0), "setdefault": keyCost(sizeEntry), "update": updateCost, "values": copyCost(sizeItem),
	},
}

func makesText(m *meter, of starlark.Value, _ []starlark.Value) error {
	return m.text(3 * int64(starlark.Len(of))) // other letters can be longer
}

func itemCost(bytes int64) method {
	return func(m *meter, _ starlark.Value, _ []starlark.Value) error { return m.allocate(bytes) }
}

func keyCost(bytes int64) method {
	return func(m *meter, _ starlark.Value, args []starlark.Value) error {
		for _, arg := range args[:min(1, len(args))] {
			if err := m.key(arg); err != nil {
				return err
			}
		}
		return m.allocate(bytes)
	}
}

func extendCost(m *meter, _ starlark.Value, args []starlark.Value) error {
	return makes(2*sizeItem)(m, args)
}

func copyCost(size int64) method {
	return func(m *meter, of starlark.Value, _ []starlark.Value) error {
		return m.items(int64(starlark.Len(of)), size)
	}
}

// moveCost is for methods that move the items of a list.
func moveCost(bytes int64) method {
	return func(m *meter, of starlark.Value, _ []starlark.Value) error {
		m.work(int64(starlark.Len(of) / 64))
		return m.allocate(bytes)
	}
}

// stripCost charges letters that are not ASCII: each letter of the text is searched among them.
func stripCost(m *meter, of starlark.Value, args []starlark.Value) error {
	letters := ""
	if len(args) == 1 {
		letters, _ = starlark.AsString(args[0])
	}
	if strings.ContainsFunc(letters, func(letter rune) bool { return letter >= utf8.RuneSelf }) {
		cost := int64(len(letters)) * int64(starlark.Len(of))
		if m.work(cost / 64); cost > 64<<20 {
			return limitf("%d bytes are too many to strip from a string of %d bytes", len(letters), starlark.Len(of))
		}
	}
	return free(m, of, args)
}

func updateCost(m *meter, of starlark.Value, args []starlark.Value) error {
	before, added := starlark.Len(of), 0
	for _, arg := range args {
		added += max(0, starlark.Len(arg))
	}
	if err := makesDict(m, args); err != nil || added < 64 || bits.Len(uint(before)) == bits.Len(uint(before+added)) {
		return err // few keys are compared with all others within microseconds, and its table does not grow
	}
	m.work(int64(before) / 16)
	return m.compares(append([]starlark.Value{of}, args...)...)
}

func formatCost(m *meter, of starlark.Value, args []starlark.Value) error {
	format := string(of.(starlark.String))
	return m.formats(format, max(1, strings.Count(format, "{")), args...)
}

func joinCost(m *meter, of starlark.Value, args []starlark.Value) error {
	if len(args) != 1 {
		return nil // an error
	}
	if err := reads(m, args); err != nil {
		return err
	}
	size := int64(max(0, starlark.Len(args[0]))) * int64(starlark.Len(of))
	for item := range elements(args[0]) {
		if s, ok := item.(starlark.String); ok {
			size += int64(len(s))
		}
	}
	return m.text(size)
}

func replaceCost(m *meter, of starlark.Value, args []starlark.Value) error {
	if len(args) < 2 {
		return nil // an error
	}
	before, ok := args[0].(starlark.String)
	after, ok2 := args[1].(starlark.String)
	if !ok || !ok2 {
		return nil // an error
	}
	text := string(of.(starlark.String))
	m.work(int64(len(text)) / 64)
	return m.text(int64(len(text)) + int64(strings.Count(text, string(before)))*int64(len(after)))
}

func splitCost(m *meter, of starlark.Value, args []starlark.Value) error {
	text := string(of.(starlark.String))
	pieces := len(text)/2 + 1
	if len(args) > 0 {
		if by, ok := args[0].(starlark.String); ok && by != "" {
			pieces = strings.Count(text, string(by)) + 1
		}
	}
	m.work(int64(len(text)) / 64)
	return m.allocate(int64(pieces) * 3 * sizeItem)
}

// attribute is x.name.
func (m *meter) attribute(x starlark.Value, name string) (starlark.Value, error) {
	if own, ok := x.(module); ok {
		return own.Attr(name)
	}
	known := methods[x.Type()]
	cost := known[name]
	if cost == nil {
		return nil, noAttribute(x, name, slices.Sorted(maps.Keys(known)))
	}
	bound, err := x.(starlark.HasAttrs).Attr(name)
	if err != nil {
		return nil, err
	}
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := cost(m, x, together(name == "update", args, kwargs)); err != nil {
			return nil, err
		}
		result, err := bound.(*starlark.Builtin).CallInternal(thread, args, kwargs)
		if name == "format" {
			return m.formatted(result, err)
		}
		return result, err
	}).BindReceiver(x), nil
}

func noAttribute(x starlark.Value, name string, known []string) error {
	hint := ""
	switch nearest := suggest.Name(name, known); {
	case nearest != "":
		hint = fmt.Sprintf("; did you mean .%s?", nearest)
	case x.Type() == "dict":
		hint = fmt.Sprintf("; write [%q] for an entry", name)
	}
	return fmt.Errorf("%s has no .%s%s", x.Type(), name, hint)
}

// module is a value with attributes, such as json.
type module struct {
	name    string
	members starlark.StringDict
}

func (m module) String() string        { return m.name }
func (m module) Type() string          { return m.name }
func (m module) Freeze()               {}
func (m module) Truth() starlark.Bool  { return true }
func (m module) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", m.name) }

// Attr returns a member.
func (m module) Attr(name string) (starlark.Value, error) {
	if value, ok := m.members[name]; ok {
		return value, nil
	}
	return nil, noAttribute(m, name, m.AttrNames())
}

// AttrNames returns the names of the members.
func (m module) AttrNames() []string { return slices.Sorted(maps.Keys(m.members)) }
