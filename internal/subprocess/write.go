// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"sync"
	"time"
)

// Write sends data, which must be whole lines. end is the number of bytes that the
// process has been sent after it, for [Process.Stalled]. If ctx ends after a part of data
// was sent, the connection is lost. If no byte was sent, the error wraps ErrNotSent.
func (p *Process) Write(ctx context.Context, data []byte) (end int64, err error) {
	if end, done := p.writeAtOnce(ctx, data); done {
		return end, nil
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel = context.WithTimeout(ctx, p.command.WriteTimeout)
	}
	defer cancel()
	n, end, err := p.send(limited, data)
	switch {
	case err == nil:
		return end, nil
	case n == 0 && ctx.Err() != nil:
		return 0, NotSent(ctx.Err())
	case limited.Err() != nil:
		p.breakOff(ErrNotReading)
	default:
		p.breakOff(ErrStdinClosed)
	}
	select {
	case <-p.lostCh: // closed soon; then it is known whether the process exited
		err = p.lossOrClosed()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if n == 0 {
		return 0, NotSent(err)
	}
	return 0, err
}

// writeAtOnce writes data that cannot block: a short message, while nothing else is written
// and the process has read everything. done is false if nothing was written.
func (p *Process) writeAtOnce(ctx context.Context, data []byte) (end int64, done bool) {
	if len(data) > writeSize || ctx.Err() != nil {
		return 0, false
	}
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	default:
		return 0, false
	}
	if count, known := p.Unread(); !known || count > 0 {
		return 0, false
	}
	if _, err := p.writePieces(data); err != nil { // all of it or nothing is written
		return 0, false
	}
	return p.intake.position(), true
}

// send waits for its turn and writes data, until ctx ends. It returns how many bytes of
// data were written, and the number of all bytes.
func (p *Process) send(ctx context.Context, data []byte) (n int, end int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	select {
	case p.writing <- struct{}{}:
		n, err := p.writeUntil(ctx, data)
		end := p.intake.position()
		if err == nil || n == 0 {
			<-p.writing
		} // otherwise nothing may follow a partial message
		return n, end, err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-p.lostCh:
		return 0, 0, p.lossOrClosed()
	}
}

// writeUntil writes data to the server until ctx ends. Where pipes do not support
// deadlines (Windows), it kills the server to interrupt the write.
func (p *Process) writeUntil(ctx context.Context, data []byte) (int, error) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		if p.stdin.SetWriteDeadline(time.Unix(1, 0)) != nil {
			p.breakOff(ErrNotReading)
			p.killGroup()
		}
	})
	n, err := p.writePieces(data)
	if !stop() {
		<-interrupted
		_ = p.stdin.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// breakOff tells supervise that nothing more can be sent.
func (p *Process) breakOff(reason error) {
	select {
	case p.broken <- reason:
	default: // a reason was already given
	}
}

// lossOrClosed returns the error of sending after the connection has ended.
func (p *Process) lossOrClosed() error {
	if p.lostErr != nil {
		return p.lostErr
	}
	return ErrClosed
}

// writeSize is how many bytes are written to a process at a time. A pipe accepts up to
// PIPE_BUF bytes, 4096 on Linux, completely or not at all (pipe(7)), so that written is
// accurate while a long message is written.
const writeSize = 4096

// intake counts the bytes sent to a process, and how many of them it has read.
type intake struct {
	mu      sync.Mutex
	written int64
	read    int64     // of written, as far as known
	since   time.Time // when read was last seen to grow or to equal written
}

// wrote adds n bytes to written.
func (i *intake) wrote(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.written += int64(n)
}

// position returns how many bytes were written.
func (i *intake) position() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.written
}

// Stalled returns how many bytes the server has read, and for how long it has not read
// although there is unread data. The duration is 0 if it reads, or if that is not
// known.
func (p *Process) Stalled() (read int64, since time.Duration) {
	i := &p.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	count, known := p.Unread()
	if !known || count == 0 {
		i.read, i.since = i.written, time.Now()
		return i.read, 0
	}
	if read := i.written - int64(count); read > i.read {
		i.read, i.since = read, time.Now()
	}
	return i.read, time.Since(i.since)
}

// writePieces writes data in pieces of writeSize and counts them. It returns how many
// bytes it wrote.
func (p *Process) writePieces(data []byte) (written int, err error) {
	for written < len(data) && err == nil {
		var n int
		p.Stalled() // records how much was read so far
		n, err = p.stdin.Write(data[written:min(written+writeSize, len(data))])
		p.intake.wrote(n)
		written += n
	}
	return written, err
}
