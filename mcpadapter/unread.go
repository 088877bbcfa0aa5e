// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
)

// writeSize is how much is written to a process at a time. A pipe takes as much as
// PIPE_BUF, which is 4096 bytes on Linux, as a whole or not at all (pipe(7)), so
// that written is known while a long message is written.
const writeSize = 4096

// intake counts the bytes that a process was sent, and how many of them it has read.
type intake struct {
	mu      sync.Mutex
	written int64
	read    int64     // of written, as far as is known
	since   time.Time // when read was last seen to grow, or to be all that was written
}

// wrote counts n more bytes.
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

// stalled returns how many bytes the server has read, and for how long it has read
// nothing although there is something: 0 if it reads, or if that is not known.
func (p *process) stalled() (read int64, since time.Duration) {
	i := &p.intake
	i.mu.Lock()
	defer i.mu.Unlock()
	count, known := p.unread()
	if !known || count == 0 {
		i.read, i.since = i.written, time.Now()
		return i.read, 0
	}
	if read := i.written - int64(count); read > i.read {
		i.read, i.since = read, time.Now()
	}
	return i.read, time.Since(i.since)
}

// writePieces writes data in pieces that are counted, and returns how much it wrote.
func (p *process) writePieces(data []byte) (written int, err error) {
	for written < len(data) && err == nil {
		var n int
		p.stalled() // notices what was read until now
		n, err = p.stdin.Write(data[written:min(written+writeSize, len(data))])
		p.intake.wrote(n)
		written += n
	}
	return written, err
}

var _ ensemble.Unreader = (*connection)(nil)

// Unread implements [ensemble.Unreader] for subprocesses on Linux. Elsewhere, and
// over HTTP, it is not known what a server has read.
func (c *connection) Unread() time.Duration {
	p, ok := c.link.(*process)
	if !ok {
		return 0
	}
	read, since := p.stalled()
	if since == 0 || c.wire.mayWorkOn(read) {
		return 0
	}
	return since
}

// mayWorkOn reports whether a request without an answer is among the first bytes
// that were written, as many as read.
func (w *wire) mayWorkOn(read int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.exchanges {
		end := x.end.Load()
		if end > 0 && end <= read && !x.quiet && !x.standing {
			return true
		}
	}
	return false
}
