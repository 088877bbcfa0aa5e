// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
)

// status is the exit status of the process.
type status int

// The exit statuses; docs/command.md promises them.
const (
	statusDone   status = 0
	statusFailed status = 1 // the runtime failed
	statusUsage  status = 2 // the command line or the configuration is wrong
	statusTool   status = 3 // the tool failed (call), or a server did (check)
	statusLimit  status = 4 // a limit ended the turn
	statusWaits  status = 5 // the turn waits for an answer

	// statusPipe is the status that a shell reports for a program ended by SIGPIPE.
	statusPipe status = 128 + 13
)

// exit is an error with the exit status of the process.
type exit struct {
	status status
	err    error // nil if everything was printed already
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usagef returns an error about the command line or the configuration.
func usagef(format string, args ...any) error {
	return withStatus(statusUsage, fmt.Errorf(format, args...))
}

// withStatus returns err with an exit status. A nil err says that everything was printed
// already.
func withStatus(s status, err error) error {
	return &exit{s, err}
}

// statusOf returns the exit status for the error of a command. An error without a status
// of its own is a failure of the runtime.
func statusOf(err error) status {
	var e *exit
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &e):
		return e.status
	}
	return statusFailed
}
