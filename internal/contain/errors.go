// SPDX-License-Identifier: Apache-2.0

package contain

// maxErrors is the maximum number of errors in a tree that are examined. If
// Unwrap of an error leads back to itself, the tree is infinite.
const maxErrors = 1000

// Error returns err if it can be used: its methods Error, Unwrap, Is and As, and
// those methods of all errors that it wraps, return. Otherwise it returns an
// error with the same text, as [Text] returns it, that wraps nothing. Call it
// where an error of foreign code comes in; from then on, errors.Is, errors.As and
// fmt are safe.
func Error(err error) error {
	if Usable(err) {
		return err
	}
	return &unusable{Text(err)}
}

// Usable reports whether [Error] would return err itself. Nil is usable.
func Usable(err error) (usable bool) {
	if err == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			usable = false
		}
	}()
	left := maxErrors
	return try(err, &left)
}

// As returns the first error of type T in the tree of err, like errors.As. It is
// for errors that are not [Usable]: it calls no method except Unwrap, and stops
// if that panics or the tree is infinite.
func As[T error](err error) (found T, ok bool) {
	left := maxErrors
	_ = Call("Unwrap", func() { found, ok = as[T](err, &left) })
	return found, ok
}

func as[T error](err error, left *int) (found T, ok bool) {
	for ; err != nil && *left > 0; *left-- {
		if found, ok = err.(T); ok {
			return found, true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, wrapped := range e.Unwrap() {
				if found, ok = as[T](wrapped, left); ok {
					return found, true
				}
			}
			return found, false
		default:
			return found, false
		}
	}
	return found, false
}

// unusable replaces an error that cannot be used.
type unusable struct{ text string }

func (e *unusable) Error() string { return e.text }

// probe is a target that matches no error.
type probe struct{}

func (*probe) Error() string { return "" }

// try calls the methods of an error and of the errors that it wraps, as package
// errors would. It reports whether the tree ends within the remaining number of
// errors.
func try(err error, left *int) bool {
	for err != nil {
		if *left--; *left < 0 {
			return false
		}
		_ = err.Error()
		if e, ok := err.(interface{ Is(error) bool }); ok {
			e.Is(&probe{})
		}
		if e, ok := err.(interface{ As(any) bool }); ok {
			target := &probe{}
			e.As(&target)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, wrapped := range e.Unwrap() {
				if !try(wrapped, left) {
					return false
				}
			}
			return true
		default:
			return true
		}
	}
	return true
}
