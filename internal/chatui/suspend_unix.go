// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chatui

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// stopTime is how long the process waits to be stopped.
const stopTime = 300 * time.Millisecond

// resumed says that the process goes on after Ctrl-Z, or was not stopped.
type resumed struct{ stopped bool }

// suspend stops the process until its shell continues it. The kernel ignores the
// signal if no shell can do so (POSIX.1-2024, System Interfaces 2.4.3, orphaned process
// groups), so that the wait for the shell has a bound here. [tea.Suspend] waits forever.
// Rows is the height of the view, which is drawn again below the output of the shell.
func suspend(rows int) tea.Cmd {
	s := &stop{rows: rows}
	return tea.Exec(s, func(error) tea.Msg { return resumed{s.stopped} })
}

// stop stops the process, as a program that has the terminal. It implements
// [tea.ExecCommand].
type stop struct {
	rows    int
	out     io.Writer
	stopped bool
}

// Run stops the processes of the job, as a terminal does.
func (s *stop) Run() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	begun := time.Now()
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	bound := time.NewTimer(stopTime)
	defer bound.Stop()
	select {
	case <-continued:
		s.stopped = true
	case <-bound.C: // it may have passed while the process was stopped
		s.stopped = time.Since(begun) > 2*stopTime
	}
	if !s.stopped {
		return nil
	}
	_, err := io.WriteString(s.out, strings.Repeat("\n", max(0, s.rows-1))) // the renderer goes up by as much
	return err
}

// SetStdin and SetStderr do nothing.
func (*stop) SetStdin(io.Reader)  {}
func (*stop) SetStderr(io.Writer) {}

// SetStdout sets the terminal.
func (s *stop) SetStdout(out io.Writer) { s.out = out }
