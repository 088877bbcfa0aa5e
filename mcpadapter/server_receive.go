// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// caller is who sent a request, and how it is answered.
type caller struct {
	// ctx carries what the embedder knows of the request: its trusted values.
	ctx context.Context
	// identity tells callers apart for what belongs to one of them, namely the
	// values of the token; empty if there is none.
	identity string
	// client is the key of the caller's limits.
	client string
	// asks: the client can be sent requests while it waits for an answer.
	asks bool
	// slot bounds the calls of a stream or a batch, where no HTTP status can
	// refuse one of them.
	slot func() (release func(), ok bool)
	// gone is closed when nothing more comes from the client; nil over HTTP.
	gone <-chan struct{}

	// For telemetry: over what the client is reached, the identity of the only
	// request that the caller is of, and the session of a stream.
	route   telemetry.Peer
	number  string
	lasting *telemetry.Session
}

// origin is for whom a request of the caller is answered: a client whose identity
// is known, else a session.
func (c *caller) origin(of mcp.Session) callers.Origin {
	origin := callers.OriginFrom(c.ctx) // of a stream within another server
	if origin.Client == "" {
		origin.Client = c.client
	}
	switch {
	case c.identity != "":
	case c.gone != nil: // a stream
		origin.Session = c.client
	case of != nil:
		origin.Session = of.ID()
	}
	return origin
}

type callerKey struct{}

// requestKey is where the HTTP handler leaves the name of a request for this
// package. No header of a request can have it: it is not a token (RFC 9110, §
// 5.6.2). The context of a session's requests is that of its first one, so that
// it cannot carry the caller.
const requestKey = " consort request"

var errNobody = errors.New("it is not known who sent the request")

// callerOf returns who sent a request. There is no default: a request of which
// it is not known must not be taken for one that may do more.
func (s *Server) callerOf(ctx context.Context, req mcp.Request) (*caller, error) {
	if from, ok := ctx.Value(callerKey{}).(*caller); ok { // on a stream; over HTTP the context carries nothing
		return from, nil
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		if key := extra.Header[requestKey]; len(key) == 1 {
			if from, ok := s.requests.Load(key[0]); ok {
				return from.(*caller), nil
			}
		}
	}
	return nil, errNobody
}

// joined is a context that also carries the values of another.
type joined struct {
	context.Context
	values context.Context
}

func (j joined) Value(key any) any {
	if value := j.Context.Value(key); value != nil {
		return value
	}
	return j.values.Value(key)
}

// receive answers the requests that have to do with what the roster offers, and
// leaves the rest of the protocol to the SDK.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") { // asks for nothing, and may be read after its HTTP request has ended
			return next(ctx, method, req)
		}
		from, err := s.callerOf(ctx, req)
		if err != nil {
			event.Log(ctx, s.log, zapcore.WarnLevel, "a request is refused", event.ServeRequestRefused, zap.String("method", method), zap.Error(err))
			return nil, refusal(jsonrpc.CodeInternalError, "%v", err)
		}
		if method != "subscriptions/listen" { // it has no end of its own
			s.running.enter()
			defer s.running.leave()
		}
		defer s.caught(ctx, method, &result, &err)
		ctx, cancel := context.WithCancelCause(callers.WithOrigin(joined{ctx, from.ctx}, from.origin(req.GetSession())))
		defer cancel(nil)
		defer context.AfterFunc(s.life, func() { cancel(errServerClosed) })()
		return s.traced(ctx, method, req, from, next)
	}
}

// caught, deferred, makes a panic an error of the request.
func (s *Server) caught(ctx context.Context, method string, result *mcp.Result, err *error) {
	if p := recover(); p != nil {
		event.Log(ctx, s.log, zapcore.ErrorLevel, "a request made the server panic", event.ServeRequestPanicked, zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*result, *err = nil, refusal(jsonrpc.CodeInternalError, "the server failed")
	}
}

func (s *Server) answer(ctx context.Context, span *telemetry.Request, method string, req mcp.Request, from *caller, next mcp.MethodHandler) (mcp.Result, error) {
	if call, ok := req.(*mcp.CallToolRequest); ok {
		return s.callTool(ctx, span, call, from)
	}
	if s.closing.Load() {
		return nil, refusal(jsonrpc.CodeInternalError, "the server is about to end")
	}
	switch req := req.(type) {
	case *mcp.ListToolsRequest:
		return s.listTools(ctx, req)
	case *mcp.ListResourcesRequest:
		return s.listResources(ctx, req)
	case *mcp.ListResourceTemplatesRequest:
		return s.listTemplates(ctx, req)
	case *mcp.ReadResourceRequest:
		return s.readResource(ctx, req)
	case *mcp.ListPromptsRequest:
		return s.listPrompts(ctx, req)
	case *mcp.GetPromptRequest:
		result, err := s.getPrompt(ctx, req, from)
		if err == nil { // else it may be a name that somebody made up
			span.Prompt(req.Params.Name)
		}
		return result, err
	case *mcp.CompleteRequest:
		return s.complete(ctx, req)
	}
	if method == "initialize" {
		if err := s.sessions.opened(req.GetSession(), from); err != nil {
			return nil, err
		}
	}
	result, err := next(ctx, method, req)
	if err == nil {
		s.instruct(ctx, result)
	}
	return result, err
}

// refusal is a JSON-RPC error.
func refusal(code int64, format string, args ...any) error {
	return &jsonrpc.Error{Code: code, Message: invoker.Failf("", format, args...).Message}
}

// speaksModern reports whether a request is of protocol 2026-07-28 or later,
// whose requests each say so.
func speaksModern(version string) bool { return version >= modern }

// clientName is what the client calls itself, for people.
func clientName(info *mcp.Implementation) string {
	if info == nil {
		return ""
	}
	return strings.TrimSpace(textcut.Bytes(info.Name, maxQuoted) + " " + textcut.Bytes(info.Version, maxQuoted))
}
