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

// sofar says what a server has done that could not be connected to in time, and
// what can be done about it.
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

// The lines of stdout that are no messages of which an error shows the beginning.
const (
	maxStray     = 3
	maxStrayLine = 200 // bytes
)

// stray keeps the first of those lines.
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

// text returns them in one line; empty if there are none.
func (s *stray) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, " | ")
	if s.more > 0 {
		text += fmt.Sprintf(" | (%d more)", s.more)
	}
	return text
}
