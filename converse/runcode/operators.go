// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// binary is x op y, for every operator but and and or.
func (m *meter) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	var err error
	switch op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.GT, syntax.LE, syntax.GE, syntax.IN, syntax.NOT_IN:
		return m.compare(op, x, y)
	case syntax.PLUS:
		err = m.sum(x, y)
	case syntax.STAR:
		err = m.product(x, y)
	case syntax.LTLT:
		err = m.shift(x, y)
	case syntax.PERCENT:
		if format, ok := x.(starlark.String); ok {
			return m.percent(string(format), y)
		}
	case syntax.PIPE:
		err = m.union(x, y)
	}
	if err != nil {
		return nil, err
	}
	result, err := starlark.Binary(op, x, y)
	if i, ok := result.(starlark.Int); ok && bitsOf(i) > maxBits {
		return nil, tooManyBits()
	}
	return result, err
}

func tooManyBits() error { return limitf("an integer of more than %d bits is too large", maxBits) }

func (m *meter) compare(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	_, dict := y.(*starlark.Dict)
	within := op == syntax.IN || op == syntax.NOT_IN
	var err error
	if within && dict { // it is not read as a whole
		err = m.key(x)
	} else if !scalar(x) || !scalar(y) {
		_, err = m.measure(x, y)
	}
	if err != nil {
		return nil, err
	}
	if within {
		return starlark.Binary(op, x, y)
	}
	result, err := starlark.Compare(op, x, y)
	return starlark.Bool(result), err
}

func scalar(v starlark.Value) bool {
	switch v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float:
		return true
	}
	return false
}

func (m *meter) sum(x, y starlark.Value) error {
	switch x := x.(type) {
	case starlark.String:
		if y, ok := y.(starlark.String); ok {
			return m.text(int64(len(x)) + int64(len(y)))
		}
	case *starlark.List, starlark.Tuple:
		if y.Type() == x.Type() {
			return m.items(int64(starlark.Len(x))+int64(starlark.Len(y)), sizeItem)
		}
	}
	return nil
}

func (m *meter) product(x, y starlark.Value) error {
	if _, ok := x.(starlark.Int); ok {
		if _, ok := y.(starlark.Int); !ok {
			x, y = y, x
		}
	}
	times, ok := y.(starlark.Int)
	if !ok {
		return nil
	}
	if i, ok := x.(starlark.Int); ok {
		if bitsOf(i)+bitsOf(times) > maxBits+64 {
			return tooManyBits()
		}
		return nil
	}
	n, ok := times.Int64()
	switch {
	case !ok && times.Sign() > 0, n > maxText:
		n = maxText + 1
	case n < 0:
		n = 0
	}
	switch x := x.(type) {
	case starlark.String:
		return m.text(int64(len(x)) * n)
	case *starlark.List, starlark.Tuple:
		return m.items(int64(starlark.Len(x))*n, sizeItem)
	}
	return nil
}

func (m *meter) shift(x, y starlark.Value) error {
	i, ok := x.(starlark.Int)
	by, ok2 := y.(starlark.Int)
	if !ok || !ok2 {
		return nil
	}
	if n, small := by.Int64(); !small || n > maxBits || n > 0 && bitsOf(i)+int(n) > maxBits+64 {
		return tooManyBits()
	}
	return nil
}

func (m *meter) union(x, y starlark.Value) error {
	_, ok := x.(*starlark.Dict)
	_, ok2 := y.(*starlark.Dict)
	if !ok || !ok2 {
		return nil
	}
	if err := m.items(int64(starlark.Len(x))+int64(starlark.Len(y)), sizeEntry); err != nil {
		return err
	}
	return m.compares(x, y)
}

// percent is format % values.
func (m *meter) percent(format string, values starlark.Value) (starlark.Value, error) {
	times := 1
	if _, named := values.(*starlark.Dict); named { // each value can occur several times
		times = strings.Count(format, "%")
	}
	if err := m.formats(format, times, values); err != nil {
		return nil, err
	}
	return m.formatted(starlark.Binary(syntax.PERCENT, starlark.String(format), values))
}

// formats checks the size of a text that is made of values, each of which may occur several
// times, before it is made.
func (m *meter) formats(format string, times int, values ...starlark.Value) error {
	s, err := m.measure(values...)
	if err != nil {
		return err
	}
	const escaped = 4 // bytes of a byte in a quoted text
	if most := int64(len(format)) + int64(times)*s.bytes*escaped; most > 16*maxText {
		return limitf("a text of up to %d bytes would be too long", most)
	}
	return nil
}

// formatted charges a text that was made.
func (m *meter) formatted(text starlark.Value, err error) (starlark.Value, error) {
	if s, ok := text.(starlark.String); ok && err == nil {
		err = m.text(int64(len(s)))
	}
	return text, err
}

// inplace is x op= y for a variable. It returns the new value.
func (m *meter) inplace(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch held := x.(type) {
	case *starlark.List:
		if _, iterable := y.(starlark.Iterable); iterable && op == syntax.PLUS {
			return x, m.extend(held, y)
		}
	case *starlark.Dict:
		if with, ok := y.(*starlark.Dict); ok && op == syntax.PIPE {
			if err := updateCost(m, x, []starlark.Value{y}); err != nil {
				return nil, err
			}
			for key, value := range with.Entries() {
				if err := held.SetKey(key, value); err != nil {
					return nil, err
				}
			}
			return x, nil
		}
	}
	return m.binary(op, x, y)
}

// extend appends the items of an iterable value to a list.
func (m *meter) extend(list *starlark.List, more starlark.Value) error {
	n, err := lengthOf(more)
	if err == nil {
		err = m.items(n, 2*sizeItem)
	}
	if err != nil {
		return err
	}
	for _, item := range slices.Collect(elements(more)) { // more can be the list itself
		if err := list.Append(item); err != nil {
			return err
		}
	}
	return nil
}

// update is x[key] op= y.
func (m *meter) update(op syntax.Token, x, key, y starlark.Value) error {
	if err := m.key(key); err != nil {
		return err
	}
	switch x := x.(type) {
	case *starlark.Dict:
		before, found, err := x.Get(key)
		if err == nil && !found {
			err = fmt.Errorf("key %v not in dict", key)
		}
		if err != nil {
			return err
		}
		after, err := m.inplace(op, before, y)
		if err != nil {
			return err
		}
		return x.SetKey(key, after)
	case *starlark.List:
		i, err := starlark.AsInt32(key)
		if err != nil {
			return err
		}
		if i < 0 {
			i += x.Len()
		}
		if i < 0 || i >= x.Len() {
			return fmt.Errorf("list index %v out of range: its length is %d", key, x.Len())
		}
		after, err := m.inplace(op, x.Index(i), y)
		if err != nil {
			return err
		}
		return x.SetIndex(i, after)
	}
	return fmt.Errorf("an item of a %s cannot be assigned to", x.Type())
}

// key checks a key of a dict, which is hashed with everything in it.
func (m *meter) key(key starlark.Value) error {
	switch key.(type) {
	case starlark.String, starlark.Tuple:
		_, err := m.measure(key)
		return err
	}
	return nil
}

// compares charges the comparisons of keys that are added to one dict. The values are dicts
// and lists of pairs. Keys whose hashes are alike are compared with each other; one that is there
// already is found at once, if it was the first of its hash.
func (m *meter) compares(values ...starlark.Value) error {
	first, alike, comparisons := map[uint32]starlark.Value{}, map[uint32]int64{}, int64(0)
	for _, v := range values {
		_, dict := v.(*starlark.Dict)
		for key := range elements(v) {
			if !dict {
				for key = range elements(key) { // the first of a pair
					break
				}
			}
			var s measured
			hash, err := key.Hash()
			if err != nil || s.walk(key, 0) != nil {
				return nil // an error
			}
			if known := first[hash]; known == nil {
				first[hash] = key
			} else if same, err := starlark.Equal(known, key); err == nil && same {
				comparisons += s.nodes
				continue
			}
			hash %= 1 << 14 // the largest table of a dict
			alike[hash]++
			comparisons += alike[hash] * s.nodes
		}
	}
	m.work(comparisons / 64)
	if comparisons > maxCompared {
		return limitf("the keys of a dict are too much alike: they need more than %d comparisons in one operation", maxCompared)
	}
	return nil
}

// elements returns the items of a value; none if it cannot be iterated over.
func elements(v starlark.Value) iter.Seq[starlark.Value] {
	if of, ok := v.(starlark.Iterable); ok {
		return starlark.Elements(of)
	}
	return func(func(starlark.Value) bool) {}
}
