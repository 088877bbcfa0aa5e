// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Reasons for which the connection to a process is lost, beside its exit.
var (
	errMessageTooLarge = errors.New("message too large")
	errHalfMessage     = errors.New("output ends in the middle of a message")
	errStdoutClosed    = errors.New("closed its stdout")
	errStdinClosed     = errors.New("closed its stdin")
	errNotReading      = errors.New("stopped reading its stdin")
)

// errNotSent is wrapped by each failure to send of which nothing has left.
var errNotSent = errors.New("not sent")

func notSent(cause error) error { return fmt.Errorf("%w: %w", errNotSent, cause) }

// lostError says how the connection to a process ended.
type lostError struct {
	server string
	exit   *os.ProcessState // nil while the process runs
	reason error            // one of the above, wrapped; nil when it just exited
	stderr string           // its last lines
}

func (e *lostError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "server %q ", e.server)
	switch {
	case e.exit == nil:
		text.WriteString(e.reason.Error())
	case e.reason == nil:
		fmt.Fprintf(&text, "exited: %s", e.exit)
	default:
		fmt.Fprintf(&text, "exited: %s: %s", e.exit, e.reason)
	}
	if e.stderr != "" {
		fmt.Fprintf(&text, "; stderr: %s", e.stderr)
	}
	return text.String()
}

func (e *lostError) Unwrap() error { return e.reason }

// lossFrom makes the error of a loss. That pipes close is no news of a process
// that has exited.
func (p *process) lossFrom(reason error) error {
	loss := &lostError{server: p.name, reason: reason, stderr: p.tail.lastLines()}
	if p.hasExited() {
		loss.exit = p.cmd.ProcessState
		if errors.Is(reason, errStdoutClosed) || errors.Is(reason, errStdinClosed) {
			loss.reason = nil
		}
	}
	return loss
}
