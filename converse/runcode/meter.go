// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"fmt"

	"go.starlark.net/starlark"
)

// The bounds of single values.
const (
	maxText   = 1 << 20 // bytes of a string
	maxItems  = 100_000 // of a list, tuple or dict that one operation makes or reads
	maxBits   = 4096    // of an integer
	maxDepth  = 32      // of nested lists and dicts
	maxNodes  = 200_000 // values within a value that one operation reads
	maxSpread = 1000    // arguments of a call that come from a list or a dict

	maxCompared = 4_000_000 // values within keys that are compared while they are added to a dict
)

// The estimated sizes of values, in bytes.
const (
	sizeItem  = 16  // of a list or tuple
	sizeEntry = 96  // of a dict
	sizeDict  = 512 // of an empty dict
)

// limitError is an error about a bound that a program has reached. [attempt] does not
// catch it.
type limitError struct{ text string }

// Error implements error.
func (e *limitError) Error() string { return e.text }

func limitf(format string, args ...any) error { return &limitError{fmt.Sprintf(format, args...)} }

// meter counts the use of resources by a program. It belongs to one run.
type meter struct {
	thread *starlark.Thread
	left   int64 // bytes that may be allocated
	bytes  int64 // the initial value of left, for messages
}

// allocate charges memory. It is never given back, so that the bound holds whatever the
// garbage collector does.
func (m *meter) allocate(bytes int64) error {
	m.work(bytes / 512)
	if m.left -= bytes; m.left < 0 {
		return limitf("the program made values of more than %d MB", m.bytes>>20)
	}
	return nil
}

// work charges steps.
func (m *meter) work(steps int64) { m.thread.Steps += uint64(max(0, steps)) }

// text charges a string of that many bytes.
func (m *meter) text(bytes int64) error {
	if bytes > maxText {
		return limitf("a string of %d bytes is too long: at most %d are allowed", bytes, maxText)
	}
	return m.allocate(bytes)
}

// items charges a list of that many items, each of a size.
func (m *meter) items(items, size int64) error {
	if items > maxItems {
		return limitf("%d items are too many for one operation: at most %d are allowed", items, maxItems)
	}
	m.work(items / 8)
	return m.allocate(items * size)
}

// measured is the extent of a value.
type measured struct {
	nodes, bytes int64
	captured     bool // includes what functions refer to
}

// measure walks through a value and everything in it, and charges the steps of that. A
// value that occurs several times counts several times, as it does in a text of it.
func (m *meter) measure(values ...starlark.Value) (measured, error) {
	var s measured
	for _, v := range values {
		if err := s.walk(v, 0); err != nil {
			return s, err
		}
	}
	m.work(s.nodes/4 + s.bytes/256)
	return s, nil
}

func (s *measured) walk(v starlark.Value, depth int) error {
	s.nodes++
	switch {
	case depth > maxDepth:
		return limitf("a value is nested more than %d levels deep, or contains itself", maxDepth)
	case s.nodes > maxNodes:
		return limitf("a value with more than %d others in it is too large for one operation", maxNodes)
	case s.bytes > 4*maxText:
		return limitf("a value of more than %d bytes is too large for one operation", 4*maxText)
	}
	s.bytes += sizeItem
	switch v := v.(type) {
	case starlark.String:
		s.bytes += int64(len(v))
	case starlark.Int:
		s.bytes += int64(bitsOf(v) / 8)
	case *starlark.List, starlark.Tuple:
		for item := range elements(v) {
			if err := s.walk(item, depth+1); err != nil {
				return err
			}
		}
	case *starlark.Function:
		if s.captured {
			return s.function(v, depth)
		}
	case *starlark.Builtin:
		if of := v.Receiver(); s.captured && of != nil {
			return s.walk(of, depth+1)
		}
	case *starlark.Dict:
		for key, value := range v.Entries() {
			if err := s.walk(key, depth+1); err != nil {
				return err
			}
			if err := s.walk(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// function walks through the values that a function refers to.
func (s *measured) function(f *starlark.Function, depth int) error {
	for i := range f.NumFreeVars() {
		if _, v := f.FreeVar(i); v != nil {
			if err := s.walk(v, depth+1); err != nil {
				return err
			}
		}
	}
	for i := range f.NumParams() {
		if v := f.ParamDefault(i); v != nil {
			if err := s.walk(v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeze makes values unchangeable, with everything that they refer to. It measures them
// first: Freeze of package starlark never ends for a function that refers to itself.
func (m *meter) freeze(values ...starlark.Value) error {
	s := measured{captured: true}
	for _, v := range values {
		if err := s.walk(v, 0); err != nil {
			return err
		}
	}
	m.work(s.nodes)
	for _, v := range values {
		v.Freeze()
	}
	return nil
}

// bitsOf returns the size of an integer, without a copy if it is small.
func bitsOf(i starlark.Int) int {
	if _, ok := i.Int64(); ok {
		return 64
	}
	return i.BigInt().BitLen()
}

// lengthOf returns the length of an iterable value, or an error if it has none.
func lengthOf(v starlark.Value) (int64, error) {
	if _, iterable := v.(starlark.Iterable); !iterable {
		return 0, fmt.Errorf("%s cannot be iterated over", v.Type())
	}
	n := starlark.Len(v)
	if n < 0 {
		return 0, fmt.Errorf("%s has no length", v.Type())
	}
	return int64(n), nil
}
