// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"go.starlark.net/starlark"
)

// A function that a rewritten program calls instead of what was written there.
type operation = func(args starlark.Tuple) (starlark.Value, error)

// operations adds the functions that a rewritten program calls.
func (m *meter) operations(to starlark.StringDict) {
	add := func(name string, do operation) {
		to[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return do(args)
		})
	}
	add(nameAttribute, func(args starlark.Tuple) (starlark.Value, error) {
		return m.attribute(args[0], string(args[1].(starlark.String)))
	})
	add(nameKey, func(args starlark.Tuple) (starlark.Value, error) { return args[0], m.key(args[0]) })
	add(nameNew, func(args starlark.Tuple) (starlark.Value, error) {
		return args[0], m.allocate(sizeDict + int64(starlark.Len(args[0]))*sizeEntry)
	})
	add(nameSlice, func(args starlark.Tuple) (starlark.Value, error) {
		return args[0], m.slice(args[0], bool(args[1].Truth()))
	})
	add(nameSpread, func(args starlark.Tuple) (starlark.Value, error) {
		n, err := lengthOf(args[0])
		if err == nil && n > maxSpread {
			err = limitf("%d arguments are too many: at most %d are allowed", n, maxSpread)
		}
		return args[0], err
	})
	for _, op := range operators {
		add(nameBinary+op.String(), func(args starlark.Tuple) (starlark.Value, error) { return m.binary(op, args[0], args[1]) })
	}
	for _, op := range augmented {
		add(nameInplace+op.String(), func(args starlark.Tuple) (starlark.Value, error) { return m.inplace(op, args[0], args[1]) })
		add(nameUpdate+op.String(), func(args starlark.Tuple) (starlark.Value, error) {
			return starlark.None, m.update(op, args[0], args[1], args[2])
		})
	}
}

// slice charges a slice of a value: strings share their bytes, unless there is a step.
func (m *meter) slice(x starlark.Value, step bool) error {
	switch x := x.(type) {
	case starlark.String:
		if step {
			return m.text(int64(len(x)))
		}
	case *starlark.List, starlark.Tuple:
		return m.items(int64(starlark.Len(x)), sizeItem)
	}
	return nil
}
