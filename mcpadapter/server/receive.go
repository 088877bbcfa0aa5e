// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/lifetime"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/shared"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// caller identifies the sender of a request and says how to answer it.
type caller struct {
	// ctx carries the values that the embedding program attached to the request: its
	// trusted values.
	ctx context.Context
	// identity distinguishes callers: state that belongs to one caller is not shared
	// with others. It comes from the values of the token; empty if there are none.
	identity string
	// profile is the name of the profile that the request was sent to; empty for all.
	profile string
	// client is the key of the caller's limits.
	client string
	// asks is true if the client accepts requests while it waits for a response.
	asks bool
	// slot bounds the requests of a stream or a batch, because an HTTP status cannot
	// refuse a single one of them.
	slot func() (release func(), ok bool)
	// gone is closed when the client has sent its last message; nil over HTTP.
	gone <-chan struct{}

	// For telemetry: the transport to the client, the id of the request if the caller
	// stands for a single one, and the session of a stream.
	route   telemetry.Peer
	number  string
	lasting *telemetry.Session

	// lines are the access log's lines of a stream; nil without an access log, and over
	// HTTP, where the line of a request is in ctx.
	lines *lines

	by *authentication // checked the request; nil over a stream

	// An HTTP request has a place, and its body memory; nil over a stream. In a session, a
	// call goes on when its client has disconnected, and needs them until it ends.
	place, memory *shared.Thing
	size          int64 // of the body
}

// hold keeps the place and the memory of a request until release. It fails if the HTTP request
// has ended.
func (c *caller) hold() (release func(), err error) {
	if !c.memory.Hold() {
		return nil, errUnknownCaller
	}
	if !c.place.Hold() {
		c.memory.Release()
		return nil, errUnknownCaller
	}
	return func() {
		c.place.Release()
		c.memory.Release()
	}, nil
}

// owner identifies the caller of a session, which cannot be used through another profile.
func (c *caller) owner() string {
	if c.profile == "" {
		return c.identity
	}
	return c.identity + "/" + c.profile
}

// origin returns the client or the session that a request of the caller belongs to: the
// client if its identity is known, otherwise the session.
func (c *caller) origin(of mcp.Session) access.Origin {
	origin := access.OriginFrom(c.ctx) // set if the stream runs within another server
	if origin.Client == "" {
		origin.Client = c.client
	}
	if c.identity == "" && of != nil {
		origin.Session = of.ID()
	}
	return origin
}

type callerKey struct{}

// requestKey is the header that passes the key of a request from the HTTP handler to
// this package. A client cannot send it, because it is not a valid header name (RFC
// 9110, § 5.6.2). The context cannot carry the caller, because the requests of a
// session share the context of its first request.
const requestKey = " consort request"

var errUnknownCaller = errors.New("the sender of the request is unknown")

// callerOf returns the caller of a request. There is no default: an unidentified
// request must not be taken for one with more rights.
func (s *Server) callerOf(ctx context.Context, req mcp.Request) (*caller, error) {
	if from, ok := ctx.Value(callerKey{}).(*caller); ok { // on a stream; over HTTP the context carries no values
		return from, nil
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		if key := extra.Header[requestKey]; len(key) == 1 {
			if from, ok := s.requests.Load(key[0]); ok {
				return from.(*caller), nil
			}
		}
	}
	return nil, errUnknownCaller
}

// receive answers the requests that concern the contents of the roster, and passes the
// rest of the protocol to the SDK.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") { // has no response, and may be read after its HTTP request has ended
			return next(ctx, method, req)
		}
		from, err := s.callerOf(ctx, req)
		release := func() {}
		if err == nil {
			release, err = from.hold()
		}
		if err != nil {
			logevent.Log(ctx, s.log, zapcore.WarnLevel, "a request is refused", logevent.ServeRequestRefused, zap.String("method", method), zap.Error(err))
			return nil, refusal(jsonrpc.CodeInternalError, "%v", err)
		}
		defer release()
		req = s.selects.unwrapped(from, req)
		if method != "subscriptions/listen" { // it does not end by itself
			s.running.enter()
			defer s.running.leave()
		}
		line := from.lineOf(req)
		defer func() { line.Failed(codeOf(result, err)) }()
		defer s.recoverPanic(ctx, method, &result, &err)
		ctx, cancel := context.WithCancelCause(access.WithOrigin(lifetime.Joined(ctx, from.ctx), from.origin(req.GetSession())))
		defer cancel(nil)
		defer context.AfterFunc(s.life, func() { cancel(errServerClosed) })()
		return s.traced(accesslog.With(ctx, line), method, req, from, next)
	}
}

// recoverPanic turns a panic into an error of the request. It must be deferred.
func (s *Server) recoverPanic(ctx context.Context, method string, result *mcp.Result, err *error) {
	if p := recover(); p != nil {
		logevent.Log(ctx, s.log, zapcore.ErrorLevel, "a request caused a panic in the server", logevent.ServeRequestPanicked, zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*result, *err = nil, refusal(jsonrpc.CodeInternalError, "the server failed")
	}
}

func (s *Server) answer(ctx context.Context, span *telemetry.Request, method string, req mcp.Request, from *caller, next mcp.MethodHandler) (mcp.Result, error) {
	if call, ok := req.(*mcp.CallToolRequest); ok {
		return s.callTool(ctx, span, call, from)
	}
	if s.taking.Err() != nil {
		return nil, refusal(jsonrpc.CodeInternalError, "the server is shutting down")
	}
	if method != "ping" && method != "initialize" && method != "subscriptions/listen" {
		release, ok := from.slot()
		if !ok {
			return nil, refusal(jsonrpc.CodeInternalError, "too many requests of this client are running")
		}
		defer release()
	}
	switch req := req.(type) {
	case *mcp.ListToolsRequest:
		return s.listTools(ctx, req, from)
	case *mcp.ListResourcesRequest:
		return s.listResources(ctx, req, from)
	case *mcp.ListResourceTemplatesRequest:
		return s.listTemplates(ctx, req, from)
	case *mcp.ReadResourceRequest:
		return s.readResource(ctx, req, from)
	case *mcp.ListPromptsRequest:
		return s.listPrompts(ctx, req, from)
	case *mcp.GetPromptRequest:
		result, err := s.getPrompt(ctx, req, from)
		if err == nil { // otherwise the client may have made up the name
			span.Prompt(req.Params.Name)
		}
		return result, err
	case *mcp.CompleteRequest:
		return s.complete(ctx, req, from)
	}
	if method == "initialize" {
		if err := s.sessions.opened(req.GetSession(), from); err != nil {
			return nil, err
		}
		s.listeners.add(req.GetSession(), from)
	}
	if method == "subscriptions/listen" {
		if !speaksModern(protocolOf(req, wire.MetaOfParams(req.GetParams()))) { // in a batch, it would be a stream that no check ends
			return nil, refusal(jsonrpc.CodeMethodNotFound, "%s needs protocol %s", method, wire.Modern)
		}
		s.listeners.listen(ctx, req, from, s.toolset)
	}
	result, err := next(withCaller(ctx, from), method, req)
	if err == nil {
		s.instruct(ctx, result, from)
	}
	return result, err
}

// refusal returns a JSON-RPC error.
func refusal(code int64, format string, args ...any) error {
	return &jsonrpc.Error{Code: code, Message: invoker.Failf("", format, args...).Message}
}

// speaksModern reports whether a request belongs to protocol 2026-07-28 or later, where
// each request carries the version.
func speaksModern(version string) bool { return version >= wire.Modern }

// clientName returns the client's name and version, for display.
func clientName(info *mcp.Implementation) string {
	if info == nil {
		return ""
	}
	return strings.TrimSpace(textcut.Bytes(info.Name, wire.MaxQuoted) + " " + textcut.Bytes(info.Version, wire.MaxQuoted))
}
