// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/questiontext"
	"github.com/consort-go/consort/mcpadapter/internal/unanswered"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
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

// interceptor sits between the SDK and a link. The SDK handles the life cycle, the
// rounds and the headers of the protocol; the interceptor sees notifications and raw
// results, one after another in the order of their arrival.
type interceptor struct {
	link
	inner mcp.Connection
	// notify is called with each notification; if it returns true, the SDK does not see
	// the notification.
	notify func(*jsonrpc.Request) bool
	// peer returns the network route of the link, and failure turns an error into a
	// failure, for the spans of requests. Both are set before the interceptor is
	// used.
	peer    func() telemetry.Peer
	failure func(err error, x *exchange, harmless bool) *invoker.Failure
	// wrap wraps the link's connection. May be nil. Set before the interceptor is
	// used.
	wrap func(mcp.Connection) mcp.Connection

	modern atomic.Bool // the version is 2026-07-28 or newer

	mu        sync.Mutex
	exchanges map[jsonrpc.ID]*exchange
	tokens    map[string]*exchange
	working   int   // the exchanges that were followed and not forgotten, except standing ones
	loggedOut error // ends the connection when working is 0; nil while there is a login

	attribution attribution
	unanswered  unanswered.Requests

	breaking sync.Once
	broken   chan struct{} // closed when no more messages follow
	cause    error         // the reason; set before broken is closed
}

func newInterceptor(l link, notify func(*jsonrpc.Request) bool) *interceptor {
	return &interceptor{
		link:      l,
		notify:    notify,
		exchanges: make(map[jsonrpc.ID]*exchange),
		tokens:    make(map[string]*exchange),
		broken:    make(chan struct{}),
	}
}

// Connect implements mcp.Transport.
func (i *interceptor) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := i.link.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if i.wrap != nil {
		inner = i.wrap(inner)
	}
	i.inner = inner
	return i, nil
}

// SessionID implements mcp.Connection.
func (i *interceptor) SessionID() string { return i.inner.SessionID() }

// Close implements mcp.Connection. The SDK calls it with a lock held.
func (i *interceptor) Close() error { return i.inner.Close() }

// Read implements mcp.Connection.
func (i *interceptor) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := i.inner.Read(ctx)
		if err != nil {
			i.fail(err)
			return nil, err
		}
		switch m := message.(type) {
		case *jsonrpc.Response:
			if !i.isFor(m) {
				continue
			}
			if i.answered(m) {
				continue
			}
		case *jsonrpc.Request:
			if !m.IsCall() && (i.progressed(m) || i.notify(m)) {
				continue
			}
			if m.IsCall() {
				if err := i.unanswered.Begin(m.ID, len(m.Params)); err != nil {
					err = &protocolError{what: err.Error()}
					i.fail(err)
					return nil, err
				}
			}
			questiontext.Keep(m)
		}
		return message, nil
	}
}

// Write implements mcp.Connection.
func (i *interceptor) Write(ctx context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		defer i.unanswered.Answer(response.ID)()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return i.sendOther(ctx, outgoing{}, message)
	}
	x := exchangeFrom(ctx)
	if x == nil || !request.IsCall() {
		return i.sendOther(ctx, outgoing{method: request.Method, id: request.ID}, message)
	}
	if x.sending != nil {
		x.sending(request)
	}
	if first := x.first; first != nil {
		x.first = nil
		i.link.(*stdioLink).insert(&jsonrpc.Response{ID: request.ID, Result: first.Result})
		return nil
	}
	ctx, span, request, carried := i.watched(ctx, x, request)
	if !i.follow(x, request, span, carried) {
		span.End(nil, telemetry.FaultOf(invoker.AsFailure(context.Canceled)))
	}
	return i.sendCall(ctx, x, request)
}

// sendCall sends a request and records whether it may have reached the server.
func (i *interceptor) sendCall(ctx context.Context, x *exchange, request *jsonrpc.Request) error {
	select {
	case <-i.broken:
		return i.cause
	default:
	}
	earlier := x.left.Swap(true)
	err := i.send(ctx, outgoing{method: request.Method, id: request.ID, traced: x.carried != nil}, request)
	if err != nil && neverLeft(err) {
		i.neverSent(request.ID)
		if !earlier {
			x.left.Store(false)
		}
	}
	x.unsent = err
	i.endWith(err, x)
	return err
}

// sendOther sends a message that is not a call.
func (i *interceptor) sendOther(ctx context.Context, out outgoing, message jsonrpc.Message) error {
	err := i.send(ctx, out, message)
	if _, isAnswer := message.(*jsonrpc.Response); isAnswer && errors.Is(err, ensemble.ErrNeedsLogin) && i.only() != nil {
		i.fail(err) // the only call waits for this answer, which cannot arrive
	}
	i.endWith(err, new(exchange))
	return err
}

// endWith ends the connection if the error of sending a message of x does that. The end of a
// login does not end other exchanges, whose answers need no new token: the connection ends
// when the last one does.
func (i *interceptor) endWith(err error, x *exchange) {
	isLogin := errors.Is(err, ensemble.ErrNeedsLogin)
	if isLogin || err == nil && x.afterLogin {
		i.mu.Lock()
		i.loggedOut = err
		i.mu.Unlock()
	}
	switch {
	case errors.Is(err, errSessionGone):
		x.ending.Store(new(err)) // first: the loss ends the request
		i.fail(err)
	case isLogin:
		x.ending.Store(new(err))
		i.forget(x)
	}
}

// neverSent removes a request that the server did not get: it is neither in flight nor
// abandoned.
func (i *interceptor) neverSent(id jsonrpc.ID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.exchanges, id)
	delete(i.attribution.abandoned, id)
}

func (i *interceptor) send(ctx context.Context, out outgoing, message jsonrpc.Message) error {
	if _, isProcess := i.link.(*stdioLink); isProcess { // which does not need to know
		return i.inner.Write(ctx, message)
	}
	return i.inner.Write(context.WithValue(ctx, outgoingKey{}, out), message)
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
func (i *interceptor) fail(err error) {
	i.breaking.Do(func() {
		if errors.Is(err, io.EOF) {
			err = errPeerClosed
		}
		i.cause = err
		close(i.broken)
	})
}

// failIdle is like fail, unless requests of either side wait for their answers. It reports
// whether the connection ends.
func (i *interceptor) failIdle(err error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.working > 0 || i.unanswered.Any() {
		return false
	}
	i.fail(err)
	return true
}

// follow records the request that the exchange now runs under. It returns false if the
// caller no longer waits for it.
func (i *interceptor) follow(x *exchange, request *jsonrpc.Request, span *telemetry.Request, carried wire.MetaCarrier) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	x.id, x.method = request.ID, request.Method
	x.answer.Store(nil)
	x.end.Store(0)
	if x.personal {
		i.attribution.note(x.origin)
	}
	if x.done { // it is still sent
		if x.personal {
			i.attribution.giveUp(x.id, x.origin)
		}
		return false
	}
	i.exchanges[x.id], x.afterLogin = x, i.loggedOut != nil
	if !x.standing && !x.counted {
		x.counted = true
		i.working++
	}
	x.carried = carried
	x.span.Store(span)
	return true
}

// inFlight returns the calls whose requests are unanswered.
func (i *interceptor) inFlight() map[jsonrpc.ID]*invoker.Call {
	i.mu.Lock()
	defer i.mu.Unlock()
	calls := make(map[jsonrpc.ID]*invoker.Call)
	for id, x := range i.exchanges {
		if x.call != nil {
			calls[id] = x.call
		}
	}
	return calls
}

// carriedBy returns the trace context that was sent with an exchange.
func (i *interceptor) carriedBy(x *exchange) wire.MetaCarrier {
	i.mu.Lock()
	defer i.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.carried
}

// cancel sends the protocol's cancellation (MCP 2025-11-25,
// basic/utilities/cancellation).
func (i *interceptor) cancel(ctx context.Context, id jsonrpc.ID, reason string) {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id.Raw(), Reason: reason})
	if err == nil {
		_ = i.Write(ctx, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
	}
}

// listen assigns progress reports with the token of x to x, until forget.
func (i *interceptor) listen(x *exchange) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens[x.token] = x
}

// forget makes the interceptor drop messages for x that arrive later.
func (i *interceptor) forget(x *exchange) {
	i.mu.Lock()
	defer i.mu.Unlock()
	x.done = true
	delete(i.tokens, x.token)
	if i.exchanges[x.id] == x {
		delete(i.exchanges, x.id)
		if x.personal {
			i.attribution.giveUp(x.id, x.origin)
		}
	}
	if x.counted {
		x.counted = false
		i.working--
	}
	if i.loggedOut != nil && i.working == 0 {
		i.fail(i.loggedOut)
	}
}

var _ ensemble.LateCounter = (*connection)(nil)

// Late implements [ensemble.LateCounter].
func (c *connection) Late() int {
	c.interceptor.mu.Lock()
	defer c.interceptor.mu.Unlock()
	return c.interceptor.attribution.late
}

// answered handles an answer, and reports whether its request was not the SDK's.
func (i *interceptor) answered(response *jsonrpc.Response) bool {
	i.mu.Lock()
	x := i.exchanges[response.ID]
	i.attribution.answered(response)
	delete(i.exchanges, response.ID)
	var method string
	if x != nil {
		method = x.method
	}
	i.mu.Unlock()
	if x == nil {
		return false
	}
	if i.modern.Load() {
		x.checkType(response)
	}
	x.receive(method, response)
	if x.returned == nil {
		return false
	}
	if said := x.answer.Load(); said != nil && said.asks {
		x.first = response
	}
	if response.Error != nil {
		x.returned <- response.Error
	} else {
		x.returned <- nil
	}
	return true
}

// receive keeps an answer, and replaces its result by the one that the SDK gets.
func (x *exchange) receive(method string, response *jsonrpc.Response) {
	if x.answered != nil {
		x.answered(method, response)
	}
	said := &answer{result: response.Result}
	if response.Error != nil && !errors.As(response.Error, &said.refusal) {
		return // an error of the SDK: the server did not answer
	}
	if clean := x.clean.Load(); clean != nil && said.refusal != nil {
		said.refusal.Message, said.refusal.Data = (*clean)(said.refusal.Message), redact.JSON(said.refusal.Data, *clean)
	}
	said.asks = response.Error == nil && resultType(response.Result) == inputRequired
	x.answer.Store(said)
	if said.asks {
		x.ended(nil, nil)
		var asked int
		if response.Result, asked = questiontext.KeepAll(response.Result); asked > unanswered.Most {
			x.reject(response, fmt.Sprintf("its result has more than %d questions", unanswered.Most))
		}
	}
	if response.Error == nil && !said.asks && x.show != nil && x.returned == nil {
		response.Result = x.show(response.Result)
	}
}

// Types of results (MCP 2026-07-28, basic/index § ResultType).
const (
	complete      = "complete"
	inputRequired = "input_required" // it asks for another round (SEP-2322), which the SDK handles
)

// resultType returns the type of a result. Without one it is complete (MCP 2026-07-28,
// basic/index § ResultType), unless it has questions.
func resultType(result json.RawMessage) string {
	kind := wire.Member(result, "resultType")
	if kind != nil && string(kind) != "null" {
		text, err := wire.String(kind)
		if err != nil {
			return string(kind)
		}
		return text
	}
	if questions, _ := wire.Members(wire.Member(result, "inputRequests")); len(questions) > 0 {
		return inputRequired
	}
	return complete
}

// checkType rejects a result of a type that this client does not know (MCP 2026-07-28,
// basic/index § ResultType).
func (x *exchange) checkType(response *jsonrpc.Response) {
	if response.Error != nil {
		return
	}
	if kind := resultType(response.Result); kind != complete && kind != inputRequired {
		x.reject(response, fmt.Sprintf("its result has the unknown resultType %q", textcut.Bytes(kind, wire.MaxQuoted)))
	}
}

// progressed handles a progress notification (MCP 2025-11-25,
// basic/utilities/progress). It returns true for all of them: a report without a call
// has arrived late and is dropped.
func (i *interceptor) progressed(request *jsonrpc.Request) bool {
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
	i.mu.Lock()
	x := i.tokens[params.Token]
	i.mu.Unlock()
	if x != nil && x.progress != nil {
		x.progress.Add(invoker.Progress{Done: params.Done, Total: params.Total, Message: params.Message})
	}
	return true
}
