// SPDX-License-Identifier: Apache-2.0

// Package output writes the messages of a server to a client that may stop reading.
package output

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// ErrNotReading says that the client does not read.
var ErrNotReading = errors.New("the client does not read the server's output: its session is ended; a client must read its server's standard output to the end")

// Output writes lines to the client of a stream. It writes in a separate goroutine,
// because on some systems a write to standard output cannot be interrupted. The
// goroutine may outlive the output, with one piece of a line.
type Output struct {
	to      io.WriteCloser
	stall   time.Duration // how long the client may take to read a piece
	onStall func()

	pieces  chan []byte // for the goroutine
	written chan error
	begin   sync.Once

	unsent      atomic.Int64  // lines
	writing     chan struct{} // semaphore of the writer whose turn it is
	stalled     atomic.Bool
	shortened   chan struct{} // closed when the client only has wire.EndTimeout left for each piece
	shortenOnce sync.Once
	closed      chan struct{}
	closing     sync.Once
	closeErr    error
}

// New returns an output; onStall is called when the client does not read.
func New(to io.WriteCloser, stall time.Duration, onStall func()) *Output {
	return &Output{
		to: to, stall: stall, onStall: onStall, pieces: make(chan []byte), written: make(chan error, 1),
		writing: make(chan struct{}, 1), shortened: make(chan struct{}), closed: make(chan struct{}),
	}
}

// run writes pieces until the output is closed.
func (o *Output) run() {
	for {
		select {
		case piece := <-o.pieces:
			_, err := o.to.Write(piece)
			o.written <- err
		case <-o.closed:
			return
		}
	}
}

// Piece is how many bytes a client must read within the stall timeout.
const Piece = 64 << 10

// WriteLine writes a line. The error is io.ErrClosedPipe after close, and
// [ErrNotReading] if the client does not read; the output is then closed.
func (o *Output) WriteLine(line []byte) error {
	o.begin.Do(func() { go o.run() })
	o.unsent.Add(1)
	defer o.unsent.Add(-1)
	o.writing <- struct{}{}
	defer func() { <-o.writing }()
	line = append(line, '\n')
	for len(line) > 0 {
		n := min(len(line), Piece)
		if err := o.writePiece(line[:n]); err != nil {
			return err
		}
		line = line[n:]
	}
	return nil
}

// MaxUnsent is how many lines may be queued for a client before reading from it pauses.
const MaxUnsent = 1024

// MakeRoom waits for one line to be written if too many are queued for the client.
func (o *Output) MakeRoom() {
	if o.unsent.Load() >= MaxUnsent {
		o.writing <- struct{}{} // waits for its turn, after the queued lines
		<-o.writing
	}
}

// writePiece passes a piece to the goroutine and waits for the write. The caller must
// hold its turn.
func (o *Output) writePiece(piece []byte) error {
	select {
	case o.pieces <- piece:
	case <-o.closed:
		return o.ended()
	}
	timer, shortened := time.NewTimer(o.stall), o.shortened
	defer timer.Stop()
	for {
		select {
		case err := <-o.written:
			return err
		case <-o.closed:
			return o.ended()
		case <-shortened:
			shortened = nil
			timer.Reset(min(o.stall, wire.EndTimeout))
		case <-timer.C:
			o.stalled.Store(true)
			o.onStall()
			_ = o.Close()
			return ErrNotReading
		}
	}
}

// Shorten limits the client to wire.EndTimeout for each piece from now on, because the session
// is ending.
func (o *Output) Shorten() { o.shortenOnce.Do(func() { close(o.shortened) }) }

// ended returns the error of a write to a closed output.
func (o *Output) ended() error {
	if o.HasStalled() {
		return ErrNotReading
	}
	return io.ErrClosedPipe
}

// HasStalled reports whether the client has stopped reading.
func (o *Output) HasStalled() bool { return o.stalled.Load() }

// Close closes the output. A write under way returns to its caller. On some systems,
// closing a file waits for such a write; close then gives up after wire.EndTimeout.
func (o *Output) Close() error {
	o.closing.Do(func() {
		close(o.closed)
		closed := make(chan error, 1)
		go func() { closed <- o.to.Close() }()
		select {
		case o.closeErr = <-closed:
		case <-time.After(wire.EndTimeout):
		}
	})
	return o.closeErr
}
