// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// exchange follows one request through the SDK to the wire and back. It
// travels in the context that the SDK hands on to the transport, so that what
// the SDK drops or cannot decode is kept: raw results, progress in its order,
// whether the request ever left.
type exchange struct {
	// sending sees each request on its way. May be nil.
	sending func(*jsonrpc.Request)
	// answered sees each answer before the SDK does. A call that needs more
	// rounds (SEP-2322) gets several. May be nil.
	answered func(method string, response *jsonrpc.Response)
	// show says what the SDK gets to see in place of the result, so that it
	// cannot stumble over what it does not know. May be nil.
	show func(result json.RawMessage) json.RawMessage
	// progress takes the reports of the call, which come under its token; nil
	// when nobody listens.
	progress *progressQueue
	token    string
	// call is the call that the request is made for; may be nil.
	call *invoker.Call
	// roots asks the client that runs the call for its roots; nil if it tells none.
	roots asker
	// personal says that the request is that of whoever asked, and not for
	// all: it carries their trusted headers.
	personal bool
	// origin is for whom a personal request is made.
	origin callers.Origin
	// standing says that the answer ends the request, such as one to listen, and
	// that the server does not work on it until then.
	standing bool
	// about says what is asked for, for the spans of the requests; quiet ones
	// have none.
	about telemetry.Call
	quiet bool

	// said is what the server answered last: what the SDK makes of it may be
	// lost together with the connection. Set before the SDK sees it.
	said atomic.Pointer[verdict]
	// spoilt says what was wrong with an answer that the SDK is not shown.
	spoilt atomic.Pointer[error]
	left   atomic.Bool // the request may have reached the server
	// end is how many bytes a process had been sent when the last request was
	// written; 0 if it was not written, or its link does not count.
	end atomic.Int64
	// span is that of the last request, while nobody has ended it.
	span atomic.Pointer[telemetry.Request]

	unsent error // what came of sending the last request; for whoever sends the next

	// Guarded by the wire:
	method string // of the last request that was sent
	id     jsonrpc.ID
	over   bool // nobody waits any more
	// carried is the context of the last request's trace; nil if there is none.
	carried metaCarrier
}

// verdict is one answer of the server.
type verdict struct {
	result  json.RawMessage
	refusal *jsonrpc.Error // errors of the SDK's own have the same type, and are none
	asks    bool           // for another round
}

// refusal is the error that the server answered with; nil if it did not.
func (x *exchange) refusal() *jsonrpc.Error {
	if said := x.said.Load(); said != nil {
		return said.refusal
	}
	return nil
}

// result is what the server answered in the end; nil if it did not.
func (x *exchange) result() json.RawMessage {
	if said := x.said.Load(); said != nil && !said.asks {
		return said.result
	}
	return nil
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
