// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/progress"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// exchange follows one request through the SDK to the server and back. It travels in the
// context that the SDK passes to the transport, and keeps data that the SDK drops or
// cannot decode: raw results, progress reports in order, and whether the request was
// sent.
type exchange struct {
	// sending is called with each request before it is sent. May be nil.
	sending func(*jsonrpc.Request)
	// answered is called with each answer before the SDK gets it. A call that needs
	// more rounds (SEP-2322) gets several. May be nil.
	answered func(method string, response *jsonrpc.Response)
	// show returns a replacement for the result that the SDK can decode without failing
	// on unknown members. May be nil.
	show func(result json.RawMessage) json.RawMessage
	// returned receives the error of a request that the SDK does not send, nil for a result;
	// nil if the SDK sends it.
	returned chan error
	// first is the answer to a request that the SDK has not sent, and that needs another
	// round: it becomes the answer to the request that the SDK sends next. May be nil.
	first *jsonrpc.Response
	// progress receives the reports with the call's token; nil if the call has no
	// listener.
	progress *progress.Queue
	token    string
	// call is the call that the request is made for; may be nil.
	call *invoker.Call
	// roots asks the client that runs the call for its roots; nil if it offers none.
	roots wire.Asker
	// personal says that the request is made for one client or conversation and not for
	// all; it carries the trusted headers.
	personal bool
	// origin is the client and conversation of a personal request.
	origin access.Origin
	// standing says that the request stays open until its answer ends it, such as a
	// request to listen, and that the server does not work on it meanwhile.
	standing bool
	// about describes the request for its spans; quiet requests have none.
	about telemetry.Call
	quiet bool

	// said is the server's last answer, set before the SDK sees it. The SDK's own
	// result may be lost together with the connection.
	answer atomic.Pointer[answer]
	// rejected says why an answer was not passed to the SDK.
	rejected atomic.Pointer[error]
	left     atomic.Bool // the request may have reached the server
	// clean removes the secrets of the last request from a text; nil if it carried none.
	clean atomic.Pointer[func(text string) string]
	// end is the number of bytes that a process had been sent after the last request
	// was written; 0 if it was not written, or if its link does not count.
	end atomic.Int64
	// span is the span of the last request until it is ended.
	span atomic.Pointer[telemetry.Request]

	ending atomic.Pointer[error] // the error of sending it that has ended the connection
	unsent error                 // the error of sending the last request, for the code that sends the next

	// Guarded by the interceptor:
	method string // of the last request that was sent
	id     jsonrpc.ID
	done   bool // the caller no longer waits
	// counted says that it is one of interceptor.working.
	counted    bool
	afterLogin bool // it began after a login had ended: if it can be sent, there is one again
	// carried is the trace context of the last request; nil if it had none.
	carried wire.MetaCarrier
}

// answer is one answer of the server.
type answer struct {
	result  json.RawMessage
	refusal *jsonrpc.Error // not an error that the SDK made itself, which has the same type
	asks    bool           // the server needs another round
}

// refusal returns the error that the server answered with, or nil.
func (x *exchange) refusal() *jsonrpc.Error {
	if said := x.answer.Load(); said != nil {
		return said.refusal
	}
	return nil
}

// result returns the server's final result, or nil if there was none.
func (x *exchange) result() json.RawMessage {
	if said := x.answer.Load(); said != nil && !said.asks {
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
