// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are served as well, with what the newest one deprecates.

package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/envelope"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// traced answers a request within its own span. Pings have none, and neither do
// requests that only wait for notifications.
func (s *Server) traced(ctx context.Context, method string, req mcp.Request, from *caller, next mcp.MethodHandler) (result mcp.Result, err error) {
	t := s.options.Telemetry
	if t == nil || method == "ping" || method == "subscriptions/listen" {
		return s.answer(ctx, nil, method, req, from, next)
	}
	meta, extra := wire.MetaOfParams(req.GetParams()), req.GetExtra()
	// _meta has the client's span. The context of the HTTP request is a different one,
	// and the parent only if there is no other; a handler around this one may have made
	// its own span from it (conventions, § Context propagation).
	if extra != nil && telemetry.TraceID(ctx) == "" {
		ctx = t.Extract(ctx, wire.HeaderCarrier{Header: extra.Header})
	}
	ctx = t.Extract(ctx, meta)
	about := telemetry.Call{Method: method, ID: numberOf(from, extra)}
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		about.Arguments = p.Arguments
	case *mcp.ReadResourceParams:
		about.URI = textcut.Bytes(p.URI, wire.MaxQuoted)
	case *mcp.SubscribeParams:
		about.URI = textcut.Bytes(p.URI, wire.MaxQuoted)
	case *mcp.UnsubscribeParams:
		about.URI = textcut.Bytes(p.URI, wire.MaxQuoted)
	}
	peer := peerOf(from, req.GetSession(), protocolOf(req, meta))
	from.lasting.Agreed(peer.Protocol)
	ctx, span := t.StartServing(ctx, about, peer)
	accesslog.From(ctx).Traced(ctx)
	defer func() { s.answered(span, req, from, result, err) }()
	defer s.recoverPanic(ctx, method, &result, &err)
	return s.answer(ctx, span, method, req, from, next)
}

// answered ends the span of a request with its answer.
func (s *Server) answered(span *telemetry.Request, req mcp.Request, from *caller, result mcp.Result, err error) {
	switch r := result.(type) {
	case *mcp.InitializeResult:
		span.Agreed(r.ProtocolVersion)
		from.lasting.Agreed(r.ProtocolVersion)
		s.sessions.agreed(req.GetSession().ID(), r.ProtocolVersion)
	case *rawResult:
		if r.failure != nil {
			span.End(nil, wire.ToolFault(r.failure))
		} else {
			span.End(r.content, nil)
		}
		return
	}
	span.End(nil, wire.ErrorFault(span, err))
}

// protocolOf returns the protocol version of a request. Since 2026-07-28 each request
// names it. Before, it comes from the session; the client may have asked for a version
// that it did not get.
func protocolOf(req mcp.Request, meta wire.MetaCarrier) string {
	if version := meta.Get(mcp.MetaKeyProtocolVersion); version != "" {
		return wire.KnownVersion(version)
	}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session.InitializeParams() == nil {
		return ""
	}
	if version := wire.KnownVersion(session.InitializeParams().ProtocolVersion); version != "" && version < wire.Modern {
		return version
	}
	return wire.Legacy
}

// peerOf describes the connection to a client. Sessions over streams have no ID in the
// protocol.
func peerOf(from *caller, session mcp.Session, version string) telemetry.Peer {
	peer := from.route
	peer.Protocol = version
	if from.gone == nil {
		peer.Session = session.ID()
	}
	return peer
}

// routeOfHTTP returns the network route of a request over HTTP.
func routeOfHTTP(r *http.Request) telemetry.Peer {
	peer := telemetry.Peer{Transport: "tcp", Network: "http", Address: hostnames.WithoutPort(r.RemoteAddr)}
	if _, number, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		peer.Port, _ = strconv.Atoi(number)
	}
	return peer
}

// routeOfStream returns the network route of a client at the other end of a stream.
func routeOfStream(in io.Reader) telemetry.Peer {
	if r, ok := in.(mcpadapter.Routed); ok {
		return r.Route()
	}
	return telemetry.Peer{Transport: "pipe"}
}

// endOfStream returns the fault of a session over a stream that broke, or nil.
func endOfStream(err error, ended bool) *telemetry.Fault {
	if err == nil || ended {
		return nil
	}
	return &telemetry.Fault{Type: string(invoker.Unavailable), Message: err.Error()}
}

// numberKey carries the ID of a request on a stream through the SDK, which does not
// expose it. No real header can have this name, see requestKey.
const numberKey = " consort number"

// numbered stores the ID of a request for numberOf.
func numbered(request *jsonrpc.Request) {
	request.Extra = &mcp.RequestExtra{Header: http.Header{numberKey: {wire.IDText(request.ID)}}}
}

// numberOf returns the JSON-RPC ID of a request; empty in a batch.
func numberOf(from *caller, extra *mcp.RequestExtra) string {
	if extra != nil && len(extra.Header[numberKey]) == 1 {
		return extra.Header[numberKey][0]
	}
	return from.number
}

// numberIn returns the ID of the request in a body.
func numberIn(body io.Reader) string {
	read, ok := body.(*readBody)
	if !ok {
		return ""
	}
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(read.text, &message) != nil || len(message.ID) == 0 {
		return ""
	}
	if message.ID[0] == '"' {
		return textcut.Bytes(envelope.Unquoted(message.ID), wire.MaxQuoted)
	}
	return textcut.Bytes(string(message.ID), wire.MaxQuoted)
}

// questioning starts a client span for a question to the client. The question's _meta
// carries the span's context.
func questioning(ctx context.Context, question mcp.InputRequest, from *caller, session *mcp.ServerSession) *telemetry.Request {
	if telemetry.From(ctx) == nil {
		return nil
	}
	about := telemetry.Call{Method: "elicitation/create"}
	switch question.(type) {
	case *mcp.CreateMessageWithToolsParams:
		about.Method = "sampling/createMessage"
	case *mcp.ListRootsParams:
		about.Method = "roots/list"
	}
	version := ""
	if p := session.InitializeParams(); p != nil {
		version = wire.KnownVersion(p.ProtocolVersion)
	}
	peer := peerOf(from, session, version)
	peer.Address, peer.Port = "", 0 // the address is not that of a server
	ctx, span := telemetry.StartRequest(ctx, about, peer)
	if params, ok := question.(interface{ SetMeta(map[string]any) }); ok {
		carried := make(wire.MetaCarrier)
		telemetry.Inject(ctx, carried)
		params.SetMeta(carried)
	}
	return span
}
