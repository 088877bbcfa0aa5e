// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"time"

	"github.com/consort-go/consort/ensemble"
)

var _ ensemble.Unreader = (*connection)(nil)

// Unread implements [ensemble.Unreader] for subprocesses on Linux. It returns 0 on
// other systems and over HTTP, where it is not known how much a server has read.
func (c *connection) Unread() time.Duration {
	l, ok := c.link.(*stdioLink)
	if !ok {
		return 0
	}
	read, since := l.process.Stalled()
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
