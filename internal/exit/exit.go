// SPDX-License-Identifier: Apache-2.0

// Package exit has the exit statuses of the command, and errors that carry one.
package exit

import (
	"errors"
	"fmt"
)

// Status is the exit status of the process.
type Status int

// The exit statuses; docs/command.md promises them.
const (
	Done   Status = 0
	Failed Status = 1 // the runtime failed
	Usage  Status = 2 // the command line or the configuration is wrong
	Tool   Status = 3 // the tool failed (call), or a server did (check)
	Limit  Status = 4 // a limit ended the turn
	Waits  Status = 5 // the turn waits for an answer

	// Pipe is the status that a shell reports for a program ended by SIGPIPE.
	Pipe Status = 128 + 13
)

// Error is an error with the exit status of the process.
type Error struct {
	Status Status
	Err    error // nil if everything was printed already
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error about the command line or the configuration.
func Usagef(format string, args ...any) error {
	return With(Usage, fmt.Errorf(format, args...))
}

// With returns err with an exit status. A nil err says that everything was printed
// already.
func With(s Status, err error) error {
	return &Error{s, err}
}

// StatusOf returns the exit status for the error of a command. An error without a status
// of its own is a failure of the runtime.
func StatusOf(err error) Status {
	var e *Error
	switch {
	case err == nil:
		return Done
	case errors.As(err, &e):
		return e.Status
	}
	return Failed
}
