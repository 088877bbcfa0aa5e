// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/consort-go/consort/internal/paste"
)

// Patience bounds each wait of a [Terminal].
const Patience = 60 * time.Second

// maxRaw bounds the output that a terminal keeps as it was written, in bytes.
const maxRaw = 1 << 20

// Terminal is a command that runs on a terminal. Its methods fail the test if what they
// wait for does not happen in time.
type Terminal struct {
	t   testing.TB
	cmd *exec.Cmd
	pty *os.File

	mu      sync.Mutex
	screen  *Emulator
	raw     []byte        // the end of the output
	changed chan struct{} // closed when the screen changes

	input  inputQueue
	closed chan struct{} // closed when the output ended
	exited chan struct{} // closed when the command ended
}

// Start starts a command on a terminal of the given size. The command ends with the test
// at the latest.
func Start(t testing.TB, cmd *exec.Cmd, cols, rows int) *Terminal {
	t.Helper()
	x := &Terminal{t: t, cmd: cmd, changed: make(chan struct{}), closed: make(chan struct{}), exited: make(chan struct{})}
	x.input.ready = sync.NewCond(&x.input.mu)
	x.screen = NewEmulator(cols, rows, x.input.add)
	var err error
	if x.pty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() { x.input.writeTo(x.pty) })
	go x.read()
	go func() {
		defer close(x.exited)
		_ = cmd.Wait() // Ends reports the status
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-x.exited
		x.input.close()
		x.pty.Close()
		<-x.closed
		writing.Wait()
	})
	return x
}

// read passes the output to the emulator.
func (x *Terminal) read() {
	defer close(x.closed)
	buffer := make([]byte, 64<<10)
	for {
		n, err := x.pty.Read(buffer)
		x.mu.Lock()
		_, _ = x.screen.Write(buffer[:n]) // it never fails
		if x.raw = append(x.raw, buffer[:n]...); len(x.raw) > 2*maxRaw {
			x.raw = append([]byte(nil), x.raw[len(x.raw)-maxRaw:]...)
		}
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type types text. A newline is the key Enter.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	x.input.add(strings.ReplaceAll(text, "\n", "\r"))
}

// Paste pastes text as a terminal does: in brackets if the program asked for them, with
// the newlines as carriage returns. It takes the mode of this moment.
func (x *Terminal) Paste(text string) {
	x.t.Helper()
	text = strings.ReplaceAll(text, "\n", "\r")
	if x.Mode(modePaste) {
		text = paste.Begins + text + paste.Ends
	}
	x.input.add(text)
}

// Resize changes the size of the window.
func (x *Terminal) Resize(cols, rows int) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.screen.Resize(cols, rows)
	if err := pty.Setsize(x.pty, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
		x.t.Fatal(err)
	}
}

// Wait waits until the screen satisfies a condition, which what describes. The condition
// sees no screen that the program is still changing (mode 2026).
func (x *Terminal) Wait(what string, satisfied func(*Emulator) bool) {
	x.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for ended := false; ; {
		x.mu.Lock()
		done := (ended || !x.screen.Mode(modeSync)) && satisfied(x.screen)
		changed := x.changed
		x.mu.Unlock()
		switch {
		case done:
			return
		case ended:
			x.t.Fatalf("the program ended, and %s was never on the screen:\n%s", what, x.All())
		}
		select {
		case <-changed:
		case <-x.closed:
			ended = true
		case <-deadline.C:
			x.t.Fatalf("%s is not on the screen:\n%s", what, x.Screen())
		}
	}
}

// See waits until the screen shows all texts. Each run of white space counts as one
// blank, so that it does not matter where lines are wrapped.
func (x *Terminal) See(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.Wait("«"+text+"»", func(e *Emulator) bool { return strings.Contains(Flat(e.Screen()), Flat(text)) })
	}
}

// SeeAnywhere is like See, and includes the lines that scrolled off the screen.
func (x *Terminal) SeeAnywhere(texts ...string) {
	x.t.Helper()
	for _, text := range texts {
		x.Wait("«"+text+"»", func(e *Emulator) bool { return strings.Contains(Flat(e.All()), Flat(text)) })
	}
}

// Gone waits until the screen does not show a text.
func (x *Terminal) Gone(text string) {
	x.t.Helper()
	x.Wait("the screen without «"+text+"»", func(e *Emulator) bool { return !strings.Contains(Flat(e.Screen()), Flat(text)) })
}

// Flat returns text with each run of white space as one blank.
func Flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// Count returns how often the screen, with the lines that scrolled off, shows a text.
func (x *Terminal) Count(text string) int { return strings.Count(Flat(x.All()), Flat(text)) }

// Screen returns the rows of the screen.
func (x *Terminal) Screen() string { return locked(x, (*Emulator).Screen) }

// All returns the lines that scrolled off the screen, and the screen.
func (x *Terminal) All() string { return locked(x, (*Emulator).All) }

// Clipboard returns the text that the program copied last.
func (x *Terminal) Clipboard() string { return locked(x, (*Emulator).Clipboard) }

// Mode reports whether the program set a private mode.
func (x *Terminal) Mode(number int) bool {
	return locked(x, func(e *Emulator) bool { return e.Mode(number) })
}

// Raw returns the end of the output as the program wrote it.
func (x *Terminal) Raw() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.raw)
}

func locked[T any](x *Terminal, get func(*Emulator) T) T {
	x.mu.Lock()
	defer x.mu.Unlock()
	return get(x.screen)
}

// Signal sends a signal to the command.
func (x *Terminal) Signal(s os.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

// Process returns the process of the command.
func (x *Terminal) Process() *os.Process { return x.cmd.Process }

// Ends waits for the end of the command and of its output, and returns the exit status.
func (x *Terminal) Ends() int {
	x.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for _, over := range []chan struct{}{x.exited, x.closed} {
		select {
		case <-over:
		case <-deadline.C:
			x.t.Fatalf("the command did not end:\n%s", x.Screen())
		}
	}
	return x.cmd.ProcessState.ExitCode()
}

// inputQueue holds what was typed, until the terminal takes it. The terminal takes
// nothing while the command does not read, and its output must be read meanwhile.
type inputQueue struct {
	mu     sync.Mutex
	ready  *sync.Cond
	text   []byte
	closed bool
}

func (q *inputQueue) add(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.text = append(q.text, text...)
	q.ready.Signal()
}

func (q *inputQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Signal()
}

// writeTo writes the input until the queue or the terminal is closed.
func (q *inputQueue) writeTo(terminal *os.File) {
	for {
		q.mu.Lock()
		for len(q.text) == 0 && !q.closed {
			q.ready.Wait()
		}
		text, closed := q.text, q.closed
		q.text = nil
		q.mu.Unlock()
		if closed {
			return
		}
		if _, err := terminal.Write(text); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}
