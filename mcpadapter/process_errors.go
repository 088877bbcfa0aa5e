// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/ensemble"
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

// lossFrom makes the error of a loss. That pipes close is no news of a process
// that has exited.
func (p *process) lossFrom(reason error) error {
	loss := &ensemble.ProcessError{Server: p.name, Reason: reason, Stderr: p.tail.lastWords()}
	if p.hasExited() {
		loss.Exit = p.cmd.ProcessState.String()
		if errors.Is(reason, errStdoutClosed) || errors.Is(reason, errStdinClosed) {
			loss.Reason = nil
		}
	}
	return loss
}
