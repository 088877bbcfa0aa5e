// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// exchange follows one request through the SDK to the wire and back. It
// travels in the context that the SDK hands on to the transport, so that what
// the SDK drops or cannot decode is kept: raw results, progress in its order,
// whether the request ever left.
type exchange struct {
	// sending sees each request on its way. May be nil.
	sending func(*jsonrpc.Request)
	// answer sees each answer before the SDK does, and may change it. A call
	// that needs more rounds (SEP-2322) gets several. May be nil.
	answer func(method string, response *jsonrpc.Response)
	// progress takes the reports of the call; nil when nobody listens.
	progress *progressQueue

	// refusal is the error that the server answered with, if it did: errors of
	// the SDK's own have the same type. Written before the SDK sees the answer.
	refusal *jsonrpc.Error
	asks    bool // the last answer asked for another round

	method string // of the last request that was sent; guarded by the wire
	id     jsonrpc.ID
	left   atomic.Bool // the request may have reached the server
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// maxProgress is how many reports wait for a slow listener; then the newest
// takes the place of the one before it.
const maxProgress = 64

// progressQueue hands reports from the reader of the wire, which must not
// wait, to the goroutine of the call.
type progressQueue struct {
	mu      sync.Mutex
	waiting []invoker.Progress
	filled  chan struct{} // holds a value while something waits
}

func newProgressQueue() *progressQueue {
	return &progressQueue{filled: make(chan struct{}, 1)}
}

func (q *progressQueue) add(p invoker.Progress) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == maxProgress {
		q.waiting = q.waiting[:maxProgress-1]
	}
	q.waiting = append(q.waiting, p)
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// deliver reports to the listener what waits.
func (q *progressQueue) deliver(call *invoker.Call) {
	q.mu.Lock()
	reports := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	for _, p := range reports {
		call.Report(p)
	}
}
