// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"fmt"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
)

// Misuse is an error of a function that cannot return one, such as Options.NewID.
type Misuse struct{ Err error }

// Unwrap returns the error.
func (m *Misuse) Unwrap() error { return m.Err }

func (m *Misuse) Error() string { return m.Err.Error() }

// SameIdentity returns the error for an ID that Options.NewID returned twice.
func SameIdentity(id string) *Misuse {
	return &Misuse{fmt.Errorf("converse: another canister of the conversation has the ID %q: Options.NewID has to return a new one each time", textcut.Bytes(id, 200))}
}

// Crashed returns the error for the recovered value of a panic; value is nil if the
// function ended its goroutine. The error has a [*contain.Panic] in its chain, unless
// it is a Misuse.
func Crashed(what string, value any) error {
	switch value := value.(type) {
	case nil:
		return fmt.Errorf("converse: %w", contain.Recovered(what, "the function ended its goroutine"))
	case *Misuse:
		return value
	case *contain.Panic: // it has the better name
		return fmt.Errorf("converse: %w", value)
	}
	return fmt.Errorf("converse: %w", contain.Recovered(what, value))
}

// Caught is deferred around a call of the program's code and turns a panic into an
// error.
func Caught(what string, err *error) {
	if value := recover(); value != nil {
		*err = Crashed(what, value)
	}
}

// RenamePanic is deferred around a call of the program's code that returns no error. It
// panics again under the name of the function.
func RenamePanic(what string) {
	switch value := recover().(type) {
	case nil:
	case *Misuse:
		panic(value)
	default:
		panic(contain.Recovered(what, value))
	}
}
