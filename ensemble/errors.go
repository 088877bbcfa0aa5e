// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/invoker"
)

// ErrClosed is in the chain of every error that says that an [Ensemble] or a
// [Roster] was used after Close. Make a new one.
var ErrClosed = errors.New("closed for good")

// ErrDisconnected is in the chain of the error of whoever waits for a
// connection, or for an answer over one, that Disconnect ends. The next use
// connects again.
var ErrDisconnected = errors.New("disconnected on request")

// ErrParked is in the chain of the error of every use of an ensemble that is
// [Parked].
var ErrParked = errors.New("parked")

// limitError says which limit was reached.
type limitError struct {
	what  string // such as "no connection"
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %s", e.what, e.limit) }

// Is makes the error one that says that a deadline has passed.
func (e *limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes the error one of the net.Error kind that timed out.
func (e *limitError) Timeout() bool { return true }

// laterError is a failure to connect that is reported until it is time to try
// again. It reads as the failure does, so that it stays the same meanwhile.
type laterError struct {
	err error
	at  time.Time
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }

// addRetry says in a failure when the next attempt to connect can be made, if err
// knows that.
func addRetry(failure *invoker.Failure, err error) {
	later, ok := errors.AsType[*laterError](err)
	if !ok || !failure.Retryable {
		return
	}
	wait := time.Until(later.at)
	wait = max(wait+time.Second-1, time.Second).Truncate(time.Second)
	failure.RetryAfter = wait
	failure.Message += fmt.Sprintf(" (It can be tried again in %s.)", wait)
}

// ProcessError says how a source lost the process of its server. It is in the
// chain of Snapshot.LastError, of a failed attempt to connect, and, as its cause,
// of the failure of each call that was lost with the process. Models are not told
// of it, unless a call finds no connection. People can be shown all of it, once
// what is secret is taken out.
type ProcessError struct {
	// Server is what the server is called.
	Server string
	// Exit is how the process ended, such as "exit status 3" or
	// "signal: killed"; empty if it still ran when the connection was lost.
	Exit string
	// Reason is what made the connection useless; nil if the process exited.
	Reason error
	// Stderr is the part of its stderr that most likely says why, in one line of
	// printable characters; empty if it wrote nothing.
	Stderr string
	// Stdout is the beginning of what it wrote to stdout that is no message, in
	// the same form, if it never sent one.
	Stdout string
}

// Error returns everything that is known, in one line.
func (e *ProcessError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "server %q ", e.Server)
	switch {
	case e.Exit == "" && e.Reason == nil:
		text.WriteString("was lost")
	case e.Exit == "":
		text.WriteString(e.Reason.Error())
	case e.Reason == nil:
		fmt.Fprintf(&text, "exited: %s", e.Exit)
	default:
		fmt.Fprintf(&text, "exited: %s: %s", e.Exit, e.Reason)
	}
	if e.Stdout != "" {
		fmt.Fprintf(&text, "; stdout has lines that are no messages: %s", e.Stdout)
	}
	if e.Stderr != "" {
		fmt.Fprintf(&text, "; stderr: %s", e.Stderr)
	}
	return text.String()
}

// Unwrap returns Reason.
func (e *ProcessError) Unwrap() error { return e.Reason }
