// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

var errClientNotReading = errors.New("the client does not read what the server writes: its session is ended; a client must read standard output of its server until that ends")

// output writes lines to the client of a stream. A goroutine of its own does
// it, because a write to standard output can be interrupted by nothing on some
// systems; it may outlive the output, with one piece of a line.
type output struct {
	to      io.WriteCloser
	stall   time.Duration // for the client to read a piece
	onStall func()

	pieces  chan []byte // for the goroutine
	written chan error
	begin   sync.Once

	unsent   atomic.Int64  // lines
	writing  chan struct{} // has room for the one whose turn it is
	stalled  atomic.Bool
	hurried  chan struct{} // closed when the client has straggle alone
	hurrying sync.Once
	closed   chan struct{}
	closing  sync.Once
	closeErr error
}

// newOutput returns an output; onStall is called when the client does not read.
func newOutput(to io.WriteCloser, stall time.Duration, onStall func()) *output {
	return &output{
		to: to, stall: stall, onStall: onStall, pieces: make(chan []byte), written: make(chan error, 1),
		writing: make(chan struct{}, 1), hurried: make(chan struct{}), closed: make(chan struct{}),
	}
}

// run writes pieces until the output is closed.
func (o *output) run() {
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

// outputPiece is how much a client must read in the time of a stall.
const outputPiece = 64 << 10

// write writes a line. The error is io.ErrClosedPipe after close, and
// errClientNotReading when the client does not read: the output is closed then.
func (o *output) write(line []byte) error {
	o.begin.Do(func() { go o.run() })
	o.unsent.Add(1)
	defer o.unsent.Add(-1)
	o.writing <- struct{}{}
	defer func() { <-o.writing }()
	line = append(line, '\n')
	for len(line) > 0 {
		n := min(len(line), outputPiece)
		if err := o.writePiece(line[:n]); err != nil {
			return err
		}
		line = line[n:]
	}
	return nil
}

// maxUnsent is how many lines may wait for a client while more is read of it.
const maxUnsent = 1024

// makeRoom waits, if too many lines wait for the client, until one has left.
func (o *output) makeRoom() {
	if o.unsent.Load() >= maxUnsent {
		o.writing <- struct{}{} // in its turn, after those that wait
		<-o.writing
	}
}

// writePiece hands a piece to the goroutine and waits. It is the caller's turn.
func (o *output) writePiece(piece []byte) error {
	select {
	case o.pieces <- piece:
	case <-o.closed:
		return o.ended()
	}
	timer, hurried := time.NewTimer(o.stall), o.hurried
	defer timer.Stop()
	for {
		select {
		case err := <-o.written:
			return err
		case <-o.closed:
			return o.ended()
		case <-hurried:
			hurried = nil
			timer.Reset(min(o.stall, straggle))
		case <-timer.C:
			o.stalled.Store(true)
			o.onStall()
			_ = o.close()
			return errClientNotReading
		}
	}
}

// hurry gives the client 2 s for each piece from now on: the session is to end.
func (o *output) hurry() { o.hurrying.Do(func() { close(o.hurried) }) }

// ended says why a closed output writes nothing.
func (o *output) ended() error {
	if o.hasStalled() {
		return errClientNotReading
	}
	return io.ErrClosedPipe
}

// hasStalled reports whether the client has stopped reading.
func (o *output) hasStalled() bool { return o.stalled.Load() }

// close closes the output. A write that is under way ends, for its caller; on
// some systems the close of a file waits for it, and is not waited for then.
func (o *output) close() error {
	o.closing.Do(func() {
		close(o.closed)
		closed := make(chan error, 1)
		go func() { closed <- o.to.Close() }()
		select {
		case o.closeErr = <-closed:
		case <-time.After(straggle):
		}
	})
	return o.closeErr
}
