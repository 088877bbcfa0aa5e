// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"sync"
)

// lifetime is the state of a connection from open until Close or until it is lost.
type lifetime struct {
	ctx context.Context // of calls and background work
	end context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // calls of the SDK and background work

	lost    chan struct{}
	lostErr error // set before lost is closed
}

func newLifetime() *lifetime {
	l := &lifetime{lost: make(chan struct{})}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

func (l *lifetime) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close makes start and during refuse work. Running work continues.
func (l *lifetime) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// during runs fn, and Close of the connection waits for it. If the connection is already
// closed, it returns errClosed instead.
func (l *lifetime) during(fn func() error) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	l.work.Add(1)
	l.mu.Unlock()
	defer l.work.Done()
	return fn()
}

// start runs fn in a goroutine that Close of the connection waits for. It returns false
// if the connection is already closed.
func (l *lifetime) start(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(fn)
	return true
}
