// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are served as well, with what the newest one deprecates.

package mcpadapter

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// traced answers a request within a span of its own. Pings have none, and
// neither have streams that wait for news: they are not work.
func (s *Server) traced(ctx context.Context, method string, req mcp.Request, from *caller, next mcp.MethodHandler) (result mcp.Result, err error) {
	t := s.options.Telemetry
	if t == nil || method == "ping" || method == "subscriptions/listen" {
		return s.answer(ctx, nil, method, req, from, next)
	}
	meta, extra := metaOfParams(req.GetParams()), req.GetExtra()
	// What stands in _meta is the client's span. The one of the HTTP request is
	// another, and the parent if there is nothing else; a handler around this
	// one may have made its own of it (conventions, § Context propagation).
	if extra != nil && !telemetry.Traced(ctx) {
		ctx = t.Extract(ctx, headerCarrier{extra.Header})
	}
	ctx = t.Extract(ctx, meta)
	about := telemetry.Call{Method: method, ID: numberOf(from, extra)}
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		about.Arguments = p.Arguments
	case *mcp.ReadResourceParams:
		about.URI = textcut.Bytes(p.URI, maxQuoted)
	case *mcp.SubscribeParams:
		about.URI = textcut.Bytes(p.URI, maxQuoted)
	case *mcp.UnsubscribeParams:
		about.URI = textcut.Bytes(p.URI, maxQuoted)
	}
	peer := peerOf(from, req.GetSession(), protocolOf(req, meta))
	from.lasting.Agreed(peer.Protocol)
	ctx, span := t.StartServing(ctx, about, peer)
	defer func() { s.answered(span, req, from, result, err) }()
	defer s.caught(ctx, method, &result, &err)
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
			span.End(nil, toolFault(r.failure))
		} else {
			span.End(r.content, nil)
		}
		return
	}
	span.End(nil, answeredWith(span, err))
}

// protocolOf is the version of the protocol that a request is of. Since
// 2026-07-28 each says so itself; before, the session does, whose client may have
// asked for one that it did not get.
func protocolOf(req mcp.Request, meta metaCarrier) string {
	if version := meta.Get(mcp.MetaKeyProtocolVersion); version != "" {
		return knownVersion(version)
	}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session.InitializeParams() == nil {
		return ""
	}
	if version := knownVersion(session.InitializeParams().ProtocolVersion); version != "" && version < modern {
		return version
	}
	return legacy
}

// peerOf says over what a client is reached. Streams have sessions without an
// identity of the protocol's.
func peerOf(from *caller, session mcp.Session, version string) telemetry.Peer {
	peer := from.route
	peer.Protocol = version
	if from.gone == nil {
		peer.Session = session.ID()
	}
	return peer
}

// routeOfHTTP is the route of a request over HTTP.
func routeOfHTTP(r *http.Request) telemetry.Peer {
	peer := telemetry.Peer{Transport: "tcp", Network: "http", Address: hostOf(r.RemoteAddr)}
	if _, number, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		peer.Port, _ = strconv.Atoi(number)
	}
	return peer
}

// routeOfStream is the route of a client at the other end of a stream.
func routeOfStream(in io.Reader) telemetry.Peer {
	if r, ok := in.(Routed); ok {
		return r.Route()
	}
	return telemetry.Peer{Transport: "pipe"}
}

// endOfStream is the fault of a session over a stream that broke.
func endOfStream(err error, ended bool) *telemetry.Fault {
	if err == nil || ended {
		return nil
	}
	return &telemetry.Fault{Type: string(invoker.Unavailable), Message: err.Error()}
}

// numberKey is where the identity of a request on a stream goes along through
// the SDK, which does not show it. No header can have it, see requestKey.
const numberKey = " consort number"

// numbered leaves the identity of a request for numberOf.
func numbered(request *jsonrpc.Request) {
	request.Extra = &mcp.RequestExtra{Header: http.Header{numberKey: {idText(request.ID)}}}
}

// numberOf returns the JSON-RPC identity of a request, empty in a batch.
func numberOf(from *caller, extra *mcp.RequestExtra) string {
	if extra != nil && len(extra.Header[numberKey]) == 1 {
		return extra.Header[numberKey][0]
	}
	return from.number
}

// numberIn returns the identity of the request in a body.
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
		return textcut.Bytes(unquoted(message.ID), maxQuoted)
	}
	return textcut.Bytes(string(message.ID), maxQuoted)
}

// questioning begins the span of a question to a client, as what it is: a
// request to the other side. Its context goes along in the question's _meta.
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
		version = knownVersion(p.ProtocolVersion)
	}
	peer := peerOf(from, session, version)
	peer.Address, peer.Port = "", 0 // it is no server's
	ctx, span := telemetry.StartRequest(ctx, about, peer)
	if params, ok := question.(interface{ SetMeta(map[string]any) }); ok {
		carried := make(metaCarrier)
		telemetry.Inject(ctx, carried)
		params.SetMeta(carried)
	}
	return span
}
