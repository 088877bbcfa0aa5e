// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"
)

// openCount counts what is open, until it is closed itself.
type openCount struct {
	mu     sync.Mutex
	count  int
	closed bool
	none   chan struct{} // closed when nothing is open and nothing can be
}

func (o *openCount) init() { o.none = make(chan struct{}) }

// add counts one more, if that is still allowed.
func (o *openCount) add() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.count++
	return true
}

func (o *openCount) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count--; o.count == 0 && o.closed {
		close(o.none)
	}
}

func (o *openCount) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.closed = true; o.count == 0 {
		close(o.none)
	}
}

// wait waits until nothing is open, within the limit.
func (o *openCount) wait(limit time.Duration) {
	bound := time.NewTimer(limit)
	defer bound.Stop()
	select {
	case <-o.none:
	case <-bound.C:
	}
}
