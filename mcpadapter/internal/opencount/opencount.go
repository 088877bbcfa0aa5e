// SPDX-License-Identifier: Apache-2.0

// Package opencount counts open items and waits until all are closed.
package opencount

import (
	"sync"
	"time"
)

// Count counts open items until it is closed itself. Init makes it ready to use; its other
// methods may be called at the same time.
type Count struct {
	mu     sync.Mutex
	count  int
	closed bool
	none   chan struct{} // closed once Count is closed and has no open items
}

// Init makes o ready to use.
func (o *Count) Init() { o.none = make(chan struct{}) }

// Add counts one more; it returns false if Count is closed.
func (o *Count) Add() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.count++
	return true
}

// Done counts one less.
func (o *Count) Done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count--; o.count == 0 && o.closed {
		close(o.none)
	}
}

// Close makes Add return false from now on.
func (o *Count) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.closed = true; o.count == 0 {
		close(o.none)
	}
}

// Wait waits until Count is closed and has no open items, at most for limit.
func (o *Count) Wait(limit time.Duration) {
	bound := time.NewTimer(limit)
	defer bound.Stop()
	select {
	case <-o.none:
	case <-bound.C:
	}
}
