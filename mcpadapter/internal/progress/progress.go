// SPDX-License-Identifier: Apache-2.0

// Package progress queues the progress reports of a call.
package progress

import (
	"sync"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// most is how many reports wait for a slow listener; after that, a new report replaces
// the one before it.
const most = 64

// maxText bounds the message of a report, in bytes, because reports wait.
const maxText = 4 << 10

// Queue passes reports from the reader of a connection, which must not block, to the
// goroutine of a call. Its methods may be called concurrently.
type Queue struct {
	// Filled holds a value while reports are waiting.
	Filled chan struct{}

	mu      sync.Mutex
	waiting []invoker.Progress
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{Filled: make(chan struct{}, 1)} }

// Add adds a report. It does not block.
func (q *Queue) Add(p invoker.Progress) {
	p.Message = textcut.Bytes(p.Message, maxText)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == most {
		q.waiting = q.waiting[:most-1]
	}
	q.waiting = append(q.waiting, p)
	select {
	case q.Filled <- struct{}{}:
	default:
	}
}

// Deliver passes the waiting reports to the listener of the call.
func (q *Queue) Deliver(call *invoker.Call) {
	q.mu.Lock()
	reports := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, p := range reports {
		call.Report(p)
	}
}
