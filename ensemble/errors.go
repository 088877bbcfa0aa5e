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

// ErrClosed is in the chain of every error of an [Ensemble] or a [Roster] that was used
// after Close. Make a new one.
var ErrClosed = errors.New("closed for good")

// errDisconnected is in the chain of the errors of callers that were waiting for a
// connection, or for an answer over one, when Disconnect ended it. The next use
// connects again.
var errDisconnected = errors.New("disconnected on request")

// errParked is in the chain of the error of every use of an ensemble that is [Parked].
var errParked = errors.New("parked")

// ErrNeedsLogin is in the chain of the error of an attempt to connect, or of a call, that
// fails until a person has logged in; see [NeedsLogin]. A source returns an error with it
// whose text says what to do. An error with a method NeedsLogin() bool that returns true means
// the same if connecting fails with it, and only that the call failed otherwise.
var ErrNeedsLogin = errors.New("needs a login")

// loginError adds [ErrNeedsLogin] to the chain of an error.
type loginError struct{ error }

func (e loginError) Unwrap() []error { return []error{e.error, ErrNeedsLogin} }

// limitError reports that a time limit was reached.
type limitError struct {
	what  string // such as "no connection"
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %s", e.what, e.limit) }

// Is makes the error match context.DeadlineExceeded.
func (e *limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout marks the error as a timeout in the sense of net.Error.
func (e *limitError) Timeout() bool { return true }

// laterError is a failure to connect that is reported until the next attempt is due.
// Its text is the failure's text, so that it stays the same until then.
type laterError struct {
	err error
	at  time.Time
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }

// addRetry adds the time until the next attempt to connect to a failure, if err
// contains it.
func addRetry(failure *invoker.Failure, err error) {
	later, ok := errors.AsType[*laterError](err)
	if !ok || !failure.Retryable {
		return
	}
	wait := time.Until(later.at)
	wait = max(wait+time.Second-1, time.Second).Truncate(time.Second)
	failure.RetryAfter = wait
	failure.Message += fmt.Sprintf(" (Try again in %s.)", wait)
}

// ProcessError describes how a source lost the process of its server. It is in the
// chain of Snapshot.LastError, of a failed attempt to connect, and, as the cause, of
// the failure of each call that was lost with the process. Models do not see it, unless
// a call finds no connection. All of it can be shown to people, once secrets are
// removed.
type ProcessError struct {
	// Server is the name of the server.
	Server string
	// Exit is how the process ended, such as "exit status 3" or "signal: killed"; empty
	// if it was still running when the connection was lost.
	Exit string
	// Reason is why the connection became unusable; nil if the process exited.
	Reason error
	// Stderr is the part of the process's stderr that most likely explains the loss, in
	// one line of printable characters; empty if the process wrote nothing.
	Stderr string
	// Stdout is the beginning of the output on stdout that is not a message, in the
	// same form, if the process never sent a message.
	Stdout string
}

// Error returns all known details in one line.
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
		fmt.Fprintf(&text, "; stdout has lines that are not messages: %s", e.Stdout)
	}
	if e.Stderr != "" {
		fmt.Fprintf(&text, "; stderr: %s", e.Stderr)
	}
	return text.String()
}

// Unwrap returns Reason.
func (e *ProcessError) Unwrap() error { return e.Reason }
