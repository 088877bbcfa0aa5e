// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/textcut"
)

// Reasons other than an exit for the loss of the connection to a process.
var (
	errMessageTooLarge = errors.New("message too large")
	errHalfMessage     = errors.New("output ends in the middle of a message")
	errStdoutClosed    = errors.New("closed its stdout")
	errStdinClosed     = errors.New("closed its stdin")
	errNotReading      = errors.New("stopped reading its stdin")
)

// errNotSent is wrapped by send errors if no byte was sent.
var errNotSent = errors.New("not sent")

func notSent(cause error) error { return fmt.Errorf("%w: %w", errNotSent, cause) }

// lossFrom returns the error for a loss. If the process has exited, closed pipes are
// not reported as the reason.
func (p *process) lossFrom(reason error) error {
	loss := &ensemble.ProcessError{Server: p.name, Reason: reason, Stderr: p.tail.lastWords()}
	if p.delivered.Load() == 0 {
		loss.Stdout = p.stray.text()
	}
	if p.hasExited() {
		loss.Exit = p.cmd.ProcessState.String()
		if errors.Is(reason, errStdoutClosed) || errors.Is(reason, errStdinClosed) {
			loss.Reason = nil
		}
	}
	return loss
}

// sofar describes the output of a server that did not connect in time, and suggests
// what the user can do.
func (p *process) sofar() string {
	stdout, stderr := p.stray.text(), p.tail.lastWords()
	text := "the server still runs"
	if p.delivered.Load() == 0 {
		switch {
		case stdout != "":
			text += " and has written lines to stdout that are no messages: " + stdout
		case stderr != "":
			text += " and has written no message"
		default:
			text += " and has written nothing: it may still install or compile something, for which it needs a longer" +
				" time-out to connect, or wait for a variable that its small environment lacks"
		}
	}
	if stderr != "" {
		text += "; stderr: " + stderr
	}
	return text
}

// Limits of the stdout lines that an error quotes because they are not messages.
const (
	maxStray     = 3
	maxStrayLine = 200 // bytes
)

// stray keeps the first lines of stdout that are not messages, for errors.
type stray struct {
	mu    sync.Mutex
	lines []string
	more  int
}

func (s *stray) add(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == maxStray {
		s.more++
		return
	}
	s.lines = append(s.lines, cleanLine(textcut.Bytes(string(line), maxStrayLine)))
}

// text returns the lines joined into one; empty if there are none.
func (s *stray) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, " | ")
	if s.more > 0 {
		text += fmt.Sprintf(" | (%d more)", s.more)
	}
	return text
}
