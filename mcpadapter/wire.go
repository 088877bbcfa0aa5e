// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// link is one new connection of a transport, before the handshake. It is the transport
// that the SDK connects over, once.
type link interface {
	mcp.Transport
	// lost is closed when the link has noticed its end itself; nil if it leaves that to
	// Read.
	lost() <-chan struct{}
	// err returns the reason; nil if close or kill ended the link.
	err() error
	// close ends the link gracefully until ctx ends, and then like kill.
	close(ctx context.Context) error
	// kill ends the link immediately. When it returns, nothing is left, as far as
	// possible.
	kill()
}

// wire sits between the SDK and a link. The SDK handles the life cycle, the rounds and
// the headers of the protocol; the wire sees notifications and raw results, one after
// another in the order of their arrival.
type wire struct {
	link
	inner mcp.Connection
	// notify is called with each notification; if it returns true, the SDK does not see
	// the notification.
	notify func(*jsonrpc.Request) bool
	// peer returns the network route of the link, and failure turns an error into a
	// failure, for the spans of requests. Both are set before the wire is used.
	peer    func() telemetry.Peer
	failure func(err error, x *exchange, harmless bool) *invoker.Failure
	// over wraps the link's connection. May be nil. Set before the wire is used.
	over func(mcp.Connection) mcp.Connection

	mu        sync.Mutex
	exchanges map[jsonrpc.ID]*exchange
	tokens    map[string]*exchange

	attribution attribution

	breaking sync.Once
	broken   chan struct{} // closed when no more messages follow
	cause    error         // the reason; set before broken is closed
}

func newWire(l link, notify func(*jsonrpc.Request) bool) *wire {
	return &wire{
		link:      l,
		notify:    notify,
		exchanges: make(map[jsonrpc.ID]*exchange),
		tokens:    make(map[string]*exchange),
		broken:    make(chan struct{}),
	}
}

// Connect implements mcp.Transport.
func (w *wire) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := w.link.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if w.over != nil {
		inner = w.over(inner)
	}
	w.inner = inner
	return w, nil
}

// SessionID implements mcp.Connection.
func (w *wire) SessionID() string { return w.inner.SessionID() }

// Close implements mcp.Connection. The SDK calls it with a lock held.
func (w *wire) Close() error { return w.inner.Close() }

// Read implements mcp.Connection.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := w.inner.Read(ctx)
		if err != nil {
			w.fail(err)
			return nil, err
		}
		switch m := message.(type) {
		case *jsonrpc.Response:
			if !w.isFor(m) {
				continue
			}
			w.answered(m)
		case *jsonrpc.Request:
			if !m.IsCall() && (w.progressed(m) || w.notify(m)) {
				continue
			}
			keepText(m)
		}
		return message, nil
	}
}

// Write implements mcp.Connection.
func (w *wire) Write(ctx context.Context, message jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return w.send(ctx, outgoing{}, message)
	}
	x := exchangeFrom(ctx)
	if x == nil || !request.IsCall() {
		return w.send(ctx, outgoing{method: request.Method, id: request.ID}, message)
	}
	if x.sending != nil {
		x.sending(request)
	}
	ctx, span, request, carried := w.watched(ctx, x, request)
	if !w.follow(x, request, span, carried) {
		span.End(nil, telemetry.FaultOf(invoker.AsFailure(context.Canceled)))
	}
	return w.sendCall(ctx, x, request)
}

// sendCall sends a request and records whether it may have reached the server.
func (w *wire) sendCall(ctx context.Context, x *exchange, request *jsonrpc.Request) error {
	select {
	case <-w.broken:
		return w.cause
	default:
	}
	earlier := x.left.Swap(true)
	err := w.send(ctx, outgoing{method: request.Method, id: request.ID, traced: x.carried != nil}, request)
	if err != nil && neverLeft(err) {
		w.neverSent(request.ID)
		if !earlier {
			x.left.Store(false)
		}
	}
	x.unsent = err
	return err
}

// neverSent removes a request that the server did not get: it is neither in flight nor
// abandoned.
func (w *wire) neverSent(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.exchanges, id)
	delete(w.attribution.abandoned, id)
}

func (w *wire) send(ctx context.Context, out outgoing, message jsonrpc.Message) error {
	err := w.inner.Write(context.WithValue(ctx, outgoingKey{}, out), message)
	if errors.Is(err, errSessionGone) {
		w.fail(err)
	}
	return err
}

// outgoing describes a message to the transport below.
type outgoing struct {
	method string
	id     jsonrpc.ID // not valid if no answer is expected
	traced bool       // it has a span
}

type outgoingKey struct{}

func outgoingFrom(ctx context.Context) outgoing {
	out, _ := ctx.Value(outgoingKey{}).(outgoing)
	return out
}

// fail records that no more messages follow, and why.
func (w *wire) fail(err error) {
	w.breaking.Do(func() {
		if errors.Is(err, io.EOF) {
			err = errPeerClosed
		}
		w.cause = err
		close(w.broken)
	})
}

// follow records the request that the exchange now runs under. It returns false if the
// caller no longer waits for it.
func (w *wire) follow(x *exchange, request *jsonrpc.Request, span *telemetry.Request, carried metaCarrier) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.id, x.method = request.ID, request.Method
	x.said.Store(nil)
	x.end.Store(0)
	if x.personal {
		w.attribution.note(x.origin)
	}
	if x.over { // it is still sent
		if x.personal {
			w.attribution.giveUp(x.id, x.origin)
		}
		return false
	}
	w.exchanges[x.id] = x
	x.carried = carried
	x.span.Store(span)
	return true
}

// inFlight returns the calls whose requests are unanswered.
func (w *wire) inFlight() map[jsonrpc.ID]*invoker.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := make(map[jsonrpc.ID]*invoker.Call)
	for id, x := range w.exchanges {
		if x.call != nil {
			calls[id] = x.call
		}
	}
	return calls
}

// carriedBy returns the trace context that was sent with an exchange.
func (w *wire) carriedBy(x *exchange) metaCarrier {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.carried
}

// cancel sends the protocol's cancellation (MCP 2025-11-25,
// basic/utilities/cancellation).
func (w *wire) cancel(ctx context.Context, id jsonrpc.ID, reason string) {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id.Raw(), Reason: reason})
	if err == nil {
		_ = w.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	}
}

// listen assigns progress reports with the token of x to x, until forget.
func (w *wire) listen(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[x.token] = x
}

// forget makes the wire drop messages for x that arrive later.
func (w *wire) forget(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.over = true
	delete(w.tokens, x.token)
	if w.exchanges[x.id] == x {
		delete(w.exchanges, x.id)
		if x.personal {
			w.attribution.giveUp(x.id, x.origin)
		}
	}
}

var _ ensemble.Latecomers = (*connection)(nil)

// Late implements [ensemble.Latecomers].
func (c *connection) Late() int {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	return c.wire.attribution.late
}

func (w *wire) answered(response *jsonrpc.Response) {
	w.mu.Lock()
	x := w.exchanges[response.ID]
	w.attribution.answered(response)
	delete(w.exchanges, response.ID)
	var method string
	if x != nil {
		method = x.method
	}
	w.mu.Unlock()
	if x == nil {
		return
	}
	if x.answered != nil {
		x.answered(method, response)
	}
	said := &verdict{result: response.Result}
	if response.Error != nil && !errors.As(response.Error, &said.refusal) {
		return // an error of the SDK: the server did not answer
	}
	said.asks = response.Error == nil && needsInput(response.Result)
	x.said.Store(said)
	if said.asks {
		x.ended(nil, nil)
		response.Result = keepTexts(response.Result)
	}
	if response.Error == nil && !said.asks && x.show != nil {
		response.Result = x.show(response.Result)
	}
}

// needsInput reports whether a result asks for another round (SEP-2322), which the SDK
// handles.
func needsInput(result json.RawMessage) bool {
	var r struct {
		ResultType    string          `json:"resultType"`
		InputRequests json.RawMessage `json:"inputRequests"`
	}
	return json.Unmarshal(result, &r) == nil && (r.ResultType == "input_required" || len(r.InputRequests) > 0)
}

// progressed handles a progress notification (MCP 2025-11-25,
// basic/utilities/progress). It returns true for all of them: a report without a call
// has arrived late and is dropped.
func (w *wire) progressed(request *jsonrpc.Request) bool {
	if request.Method != "notifications/progress" {
		return false
	}
	var params struct {
		Token   string  `json:"progressToken"`
		Done    float64 `json:"progress"`
		Total   float64 `json:"total"`
		Message string  `json:"message"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return true // all tokens of this package are strings
	}
	w.mu.Lock()
	x := w.tokens[params.Token]
	w.mu.Unlock()
	if x != nil && x.progress != nil {
		x.progress.add(invoker.Progress{Done: params.Done, Total: params.Total, Message: params.Message})
	}
	return true
}
