// SPDX-License-Identifier: Apache-2.0

// Package unsaved marks the errors of a conversation that knows more about its calls than
// its log does.
package unsaved

import "errors"

// Error is an error of a conversation with results that its log did not accept, or with
// intents that it did not confirm and whose calls were not made. If the same conversation
// continues, nothing of this is lost.
type Error struct{ Err error }

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Mark returns err, as an [Error] if unsaved is true.
func Mark(err error, unsaved bool) error {
	if unsaved {
		return &Error{Err: err}
	}
	return err
}

// Is reports whether the chain of err has an [Error].
func Is(err error) bool {
	_, is := errors.AsType[*Error](err)
	return is
}
