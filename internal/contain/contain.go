// SPDX-License-Identifier: Apache-2.0

// Package contain calls foreign code (interfaces, function values, methods of
// errors) and turns its panics into errors. A panic in a goroutine started by
// this module would otherwise end the whole process.
//
// Faults that recover cannot catch, such as a stack overflow or concurrent writes
// to a map, still end it.
package contain

import (
	"fmt"
	"reflect"
	"runtime/debug"
)

// Panic is the error for code that panicked.
type Panic struct {
	// What names the code that panicked, as the subject of a sentence.
	What string
	// Value is the argument of the panic. Its text is safe to use: an error whose
	// methods panic has been replaced as by [Error].
	Value any
	// Stack is the stack of the goroutine at the panic, at most 64 KiB.
	Stack []byte
}

const maxStack = 64 << 10

// Error returns the name of the code and the text of the value.
func (p *Panic) Error() string { return p.What + " panicked: " + Text(p.Value) }

// Unwrap returns Value if it is an error, such as a [runtime.Error].
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call runs f and returns a [*Panic] if it panics, and otherwise nil. The
// argument what names the code, such as "the function Redact". If f ends its
// goroutine with [runtime.Goexit], Call does not return.
func Call(what string, f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Recovered(what, value)
		}
	}()
	f()
	return nil
}

// Recovered returns the error for a value that recover returned, for deferred
// functions that cannot use [Call].
func Recovered(what string, value any) *Panic {
	if err, ok := value.(error); ok {
		value = Error(err)
	}
	stack := debug.Stack()
	return &Panic{What: what, Value: value, Stack: stack[:min(len(stack), maxStack)]}
}

// Text returns the text of a value from its method Error or String, or otherwise
// from package fmt. If the method panics, as it often does for a nil pointer, the
// text says so and names the type.
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

// IsNil reports whether value is nil, or an interface that holds a nil pointer,
// function, map, slice or channel.
func IsNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// typeOf returns the name of the type of value, and says if it is a nil pointer.
func typeOf(value any) string {
	name := fmt.Sprintf("%T", value)
	if IsNil(value) {
		return "a nil " + name
	}
	return name
}

// reason returns the text of a method's panic after a colon, or an empty string
// if getting it would require calling the same code again.
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
