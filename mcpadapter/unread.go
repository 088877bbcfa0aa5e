// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
)

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

// stalled returns how many bytes the server has read, and for how long it has not read
// although there is unread data. The duration is 0 if it reads, or if that is not
// known.
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

// writePieces writes data in pieces of writeSize and counts them. It returns how many
// bytes it wrote.
func (p *process) writePieces(data []byte) (written int, err error) {
	for written < len(data) && err == nil {
		var n int
		p.stalled() // records how much was read so far
		n, err = p.stdin.Write(data[written:min(written+writeSize, len(data))])
		p.intake.wrote(n)
		written += n
	}
	return written, err
}

var _ ensemble.Unreader = (*connection)(nil)

// Unread implements [ensemble.Unreader] for subprocesses on Linux. It returns 0 on
// other systems and over HTTP, where it is not known how much a server has read.
func (c *connection) Unread() time.Duration {
	p, ok := c.link.(*process)
	if !ok {
		return 0
	}
	read, since := p.stalled()
	if since == 0 || c.interceptor.mayWorkOn(read) {
		return 0
	}
	return since
}

// mayWorkOn reports whether an unanswered request lies within the first read bytes that
// were written.
func (i *interceptor) mayWorkOn(read int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, x := range i.exchanges {
		end := x.end.Load()
		if end > 0 && end <= read && !x.quiet && !x.standing {
			return true
		}
	}
	return false
}
