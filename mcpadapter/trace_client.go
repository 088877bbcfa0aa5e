// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"errors"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var errUnanswered = errors.New("no answer")

// watched starts the span of a request that is about to be sent, if ctx has telemetry,
// and returns the request with the span's context in its _meta. Each request has its
// own span, and so has each further round of a call (SEP-2322), so time spent waiting
// for the user is not attributed to the server.
func (i *interceptor) watched(ctx context.Context, x *exchange, request *jsonrpc.Request) (context.Context, *telemetry.Request, *jsonrpc.Request, wire.MetaCarrier) {
	if x.quiet || telemetry.From(ctx) == nil {
		return ctx, nil, request, nil
	}
	if before := x.span.Swap(nil); before != nil { // of the previous request of the same handshake
		before.End(nil, telemetry.FaultOf(i.failure(cmp.Or(x.unsent, errUnanswered), x, true)))
	}
	about := x.about
	about.Method, about.ID = request.Method, wire.IDText(request.ID)
	ctx, span := telemetry.StartRequest(ctx, about, i.peer())
	carried := make(wire.MetaCarrier)
	telemetry.Inject(ctx, carried)
	sent := *request
	sent.Params = carrying(request.Params, carried)
	return ctx, span, &sent, carried
}

// ended ends the span of the last request, if it is still open.
func (x *exchange) ended(content []canister.Content, fault *telemetry.Fault) {
	x.span.Swap(nil).End(content, fault)
}

// failed ends the span of the last request with a failure.
func (x *exchange) failed(failure *invoker.Failure) *invoker.Failure {
	span := x.span.Swap(nil)
	if span == nil {
		return failure
	}
	fault := telemetry.FaultOf(failure)
	if refusal := x.refusal(); refusal != nil {
		fault = wire.RefusalFault(span, refusal)
	}
	span.End(nil, fault)
	return failure
}

// listed ends the span of a request for a page of tools.
func (x *exchange) listed(tools, aside int) {
	span := x.span.Swap(nil)
	span.Listed(tools, aside)
	span.End(nil, nil)
}

// returned returns the fault of the result of a tool, or nil if the tool did not fail.
func returned(failure *invoker.Failure) *telemetry.Fault {
	if failure == nil || failure.Code == invoker.Protocol { // a tool cannot have this code
		return telemetry.FaultOf(failure)
	}
	return wire.ToolFault(failure)
}

// endHandshakeSpan ends the span of a request of the handshake. version is the negotiated one or,
// in the newest protocol, the version of the request.
func endHandshakeSpan(span *telemetry.Request, version string, err error) {
	span.Agreed(version)
	span.End(nil, wire.ErrorFault(span, err))
}

// route returns the network route of the connection.
func (c *connection) route() telemetry.Peer {
	var p telemetry.Peer
	if l, ok := c.link.(Routed); ok {
		p = l.Route()
	}
	p.Ensemble, p.Session = c.ensemble, c.interceptor.SessionID()
	p.Protocol, _ = c.version.Load().(string)
	return p
}

// lossOf returns the fault of a session that was lost; nil if it was not.
func (r *requester) lossOf(err error) *telemetry.Fault {
	if err == nil {
		return nil
	}
	return telemetry.FaultOf(r.lostCall(err, true, true))
}

// Route implements [Routed].
func (l *stdioLink) Route() telemetry.Peer { return telemetry.Peer{Transport: "pipe"} }

// route returns the network route to the origin.
func (t *roundTripper) route() telemetry.Peer {
	return telemetry.Peer{Transport: "tcp", Network: "http", Address: t.origin.Hostname(), Port: portNumber(t.origin)}
}

// Route implements [Routed].
func (l customLink) Route() telemetry.Peer {
	if r, ok := l.Link.(Routed); ok {
		return r.Route()
	}
	return telemetry.Peer{}
}

// answering starts the span of a request from the server, such as a question to the
// person: in the trace that the request names, otherwise in the trace of the call that
// it belongs to. A round of a call (SEP-2322) is not a request and has no span.
func (q *questions) answering(ctx context.Context, method string, req mcp.Request) (context.Context, *telemetry.Request) {
	if q.telemetry == nil || method == "ping" {
		return ctx, nil
	}
	if carried := q.interceptor.carriedBy(q.askedBy(ctx)); carried != nil {
		ctx = q.telemetry.Extract(ctx, carried)
	}
	ctx = q.telemetry.Extract(ctx, wire.MetaOfParams(req.GetParams()))
	return q.telemetry.StartServing(ctx, telemetry.Call{Method: method}, q.route())
}
