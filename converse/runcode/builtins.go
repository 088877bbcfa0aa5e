// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// universe are the functions of Starlark that a program may call, with what a call may
// cost. Others, such as getattr, are refused.
var universe = map[string]func(m *meter, args []starlark.Value) error{
	"abs": nothing, "any": reads, "all": reads, "bool": nothing, "chr": nothing, "dict": makesDict, "enumerate": makes(5 * sizeItem),
	"fail": writes, "float": nothing, "int": parses, "len": nothing, "list": makes(sizeItem), "max": orders, "min": orders, "ord": nothing,
	"print": writes, "range": nothing, "repr": writes, "reversed": makes(sizeItem), "sorted": orders, "str": writes,
	"tuple": makes(sizeItem), "type": nothing, "zip": makes(5 * sizeItem),
}

func nothing(*meter, []starlark.Value) error { return nil }

// reads is for functions that iterate over their arguments.
func reads(m *meter, args []starlark.Value) error { return makes(0)(m, args) }

// makes is for functions that make a list from what their arguments contain.
func makes(size int64) func(*meter, []starlark.Value) error {
	return func(m *meter, args []starlark.Value) error {
		for _, arg := range args {
			if _, ok := arg.(starlark.Iterable); !ok {
				continue // a number, or an error
			}
			n, err := lengthOf(arg)
			if err == nil {
				err = m.items(n, size)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// makesDict is for dict, which hashes the keys.
func makesDict(m *meter, args []starlark.Value) error {
	if _, err := m.measure(args...); err != nil {
		return err
	}
	if err := makes(sizeEntry)(m, args); err != nil {
		return err
	}
	return m.compares(args...)
}

// orders is for functions that compare what their arguments contain.
func orders(m *meter, args []starlark.Value) error {
	if err := makes(sizeItem)(m, args); err != nil { // first: a range is not measured
		return err
	}
	s, err := m.measure(args...)
	m.work(2 * s.nodes)
	return err
}

// writes is for functions that make a text of their arguments.
func writes(m *meter, args []starlark.Value) error { return m.formats("", 1, args...) }

// parses is for int, which reads a text.
func parses(_ *meter, args []starlark.Value) error {
	for _, arg := range args {
		if s, ok := arg.(starlark.String); ok && len(s) > maxBits/3 {
			return tooManyBits()
		}
	}
	return nil
}

// builtins adds the functions of Starlark, and refuses those that a program may not call.
func (m *meter) builtins(to starlark.StringDict) {
	for name, real := range starlark.Universe {
		function, ok := real.(*starlark.Builtin)
		if !ok {
			continue // a constant
		}
		cost := universe[name]
		to[name] = starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if cost == nil {
				return nil, fmt.Errorf("%s is not available", name)
			}
			if err := cost(m, together(name == "dict", args, kwargs)); err != nil {
				return nil, err
			}
			result, err := function.CallInternal(thread, args, kwargs)
			return m.formatted(result, err)
		})
	}
	to["sum"] = starlark.NewBuiltin("sum", m.sumOf)
	to["json"] = module{"json", starlark.StringDict{
		"decode": starlark.NewBuiltin("json.decode", m.decodeText), "loads": starlark.NewBuiltin("json.loads", m.decodeText),
		"encode": starlark.NewBuiltin("json.encode", m.encodeText), "dumps": starlark.NewBuiltin("json.dumps", m.encodeText),
	}}
}

// together returns all arguments of a call. Of a function that makes entries of a dict, those with
// names are one list of pairs.
func together(entries bool, args starlark.Tuple, kwargs []starlark.Tuple) []starlark.Value {
	all := slices.Clone(args)
	var pairs starlark.Tuple
	for _, pair := range kwargs {
		if entries {
			pairs = append(pairs, pair)
		} else {
			all = append(all, pair[1])
		}
	}
	if len(pairs) > 0 {
		all = append(all, pairs)
	}
	return all
}

// sumOf is sum(items, start=0).
func (m *meter) sumOf(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var items starlark.Iterable
	sum := starlark.Value(starlark.MakeInt(0))
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "items", &items, "start?", &sum); err != nil {
		return nil, err
	}
	if err := reads(m, []starlark.Value{items}); err != nil {
		return nil, err
	}
	for item := range starlark.Elements(items) {
		var err error
		if sum, err = m.binary(syntax.PLUS, sum, item); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// maxPrinted is how many bytes of what a program prints are kept.
const maxPrinted = 4 << 10

// printed collects what a program prints.
type printed struct {
	strings.Builder
	cut bool
}

func (p *printed) line(_ *starlark.Thread, text string) {
	if p.Len()+len(text) >= maxPrinted {
		p.cut = true
		return
	}
	p.WriteString(text + "\n")
}
