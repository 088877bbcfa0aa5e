// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/ensemble"
)

// Reasons other than an exit for the loss of the connection to a process.
var (
	ErrMessageTooLarge = errors.New("message too large")
	ErrHalfMessage     = errors.New("output ends in the middle of a message")
	ErrStdoutClosed    = errors.New("closed its stdout")
	ErrStdinClosed     = errors.New("closed its stdin")
	ErrNotReading      = errors.New("stopped reading its stdin")
)

// ErrClosed is the error of a write after Close, Stop or Kill.
var ErrClosed = errors.New("the process was closed")

// ErrNotSent is wrapped by the error of a write if no byte was sent.
var ErrNotSent = errors.New("not sent")

// NotSent returns an error that wraps [ErrNotSent] and cause.
func NotSent(cause error) error { return fmt.Errorf("%w: %w", ErrNotSent, cause) }

// lossFrom returns the error for a loss. If the process has exited, closed pipes are
// not reported as the reason.
func (p *Process) lossFrom(reason error) error {
	loss := &ensemble.ProcessError{Server: p.command.Name, Reason: reason, Stderr: p.tail.lastWords()}
	if p.delivered.Load() == 0 {
		loss.Stdout = p.stray.text()
	}
	if p.hasExited() {
		loss.Exit = p.cmd.ProcessState.String()
		if errors.Is(reason, ErrStdoutClosed) || errors.Is(reason, ErrStdinClosed) {
			loss.Reason = nil
		}
	}
	return loss
}

// Describe describes the output so far of a server that did not connect in time, and
// suggests what the user can do.
func (p *Process) Describe() string {
	stdout, stderr := p.stray.text(), p.tail.lastWords()
	text := "the server still runs"
	if p.delivered.Load() == 0 {
		switch {
		case stdout != "":
			text += " and has written lines to stdout that are not messages: " + stdout
		case stderr != "":
			text += " and has written no message"
		default:
			text += " and has written nothing: it may still be installing or compiling, which needs a longer" +
				" connect time-out, or may be waiting for an environment variable that it was not given"
		}
	}
	if stderr != "" {
		text += "; stderr: " + stderr
	}
	return text
}

// LastWords returns the end of stderr in one line, from the line that names the error;
// empty if nothing was written.
func (p *Process) LastWords() string { return p.tail.lastWords() }
