// SPDX-License-Identifier: Apache-2.0

// Package contain calls code of other authors (interfaces, function values,
// methods of errors) so that its panics stay there. A panic on a goroutine that
// the runtime started would otherwise end the whole process.
//
// What recover cannot catch, such as a stack overflow or concurrent writes to
// one map, still ends it.
package contain

import (
	"fmt"
	"reflect"
	"runtime/debug"
)

// Panic is the error of code that panicked.
type Panic struct {
	// What is the code that panicked, as the subject of a sentence.
	What string
	// Value is what it panicked with. Its text is safe to ask for: if it is an
	// error whose methods panic, it was replaced as by [Error].
	Value any
	// Stack is the stack of the goroutine at that point, at most 64 KiB.
	Stack []byte
}

const maxStack = 64 << 10

// Error says what panicked, and with what.
func (p *Panic) Error() string { return p.What + " panicked: " + Text(p.Value) }

// Unwrap returns the value if it is an error, such as a [runtime.Error].
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call runs f and returns a [*Panic] if it panics, else nil. What names the code,
// such as "the function Redact". If f ends its goroutine with
// [runtime.Goexit], Call does not return.
func Call(what string, f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Recovered(what, value)
		}
	}()
	f()
	return nil
}

// Recovered makes the error of a value that recover returned; it is for deferred
// functions that cannot use [Call].
func Recovered(what string, value any) *Panic {
	if err, ok := value.(error); ok {
		value = Error(err)
	}
	stack := debug.Stack()
	return &Panic{What: what, Value: value, Stack: stack[:min(len(stack), maxStack)]}
}

// Text returns the text of a value: what its method Error or String returns, or
// else what package fmt prints. If the method panics, as that of a nil pointer
// in an error often does, the text says so and names the type.
func Text(value any) (text string) {
	method := "String"
	if _, ok := value.(error); ok {
		method = "Error"
	}
	defer func() {
		if p := recover(); p != nil {
			text = typeOf(value) + " without a text (its method " + method + " panicked" + reason(p) + ")"
		}
	}()
	switch value := value.(type) {
	case error:
		return value.Error()
	case fmt.Stringer:
		return value.String()
	}
	return fmt.Sprint(value)
}

// IsNil reports whether a value is nil, or a nil pointer, function, map, slice or
// channel in an interface.
func IsNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// typeOf names the type of a value, and says if it is a nil pointer.
func typeOf(value any) string {
	name := fmt.Sprintf("%T", value)
	if IsNil(value) {
		return "a nil " + name
	}
	return name
}

// reason returns what a method panicked with, behind a colon; empty if that
// cannot be told without calling more of the same code.
func reason(value any) string {
	switch value := value.(type) {
	case string:
		return ": " + value
	case interface {
		error
		RuntimeError()
	}:
		defer func() { _ = recover() }()
		return ": " + value.Error()
	}
	return ""
}
