// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"
)

// openCount counts open items until it is closed itself.
type openCount struct {
	mu     sync.Mutex
	count  int
	closed bool
	none   chan struct{} // closed when nothing is open and openCount is closed
}

func (o *openCount) init() { o.none = make(chan struct{}) }

// add counts one more; it returns false if openCount is closed.
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

// wait waits until openCount is closed and nothing is open, at most for limit.
func (o *openCount) wait(limit time.Duration) {
	bound := time.NewTimer(limit)
	defer bound.Stop()
	select {
	case <-o.none:
	case <-bound.C:
	}
}
