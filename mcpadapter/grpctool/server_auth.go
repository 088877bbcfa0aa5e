// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// caller identifies the sender of a request.
type caller struct {
	ctx      context.Context // with the trusted values
	identity string          // empty without authentication
	client   string          // the client whose limits apply
	by       *guard          // checked the credentials
	known    *verdict        // of the guard
}

// guard decides who may send requests. It does not change; [Server.SetAccess] sets
// another.
type guard struct {
	credentials access.Credentials
	trusted     []invoker.Value                                                 // of every caller
	byToken     func(context.Context, string) (string, []invoker.Value, error)  // ServerOptions.Authenticate; may be nil
	choose      func(context.Context) *ensemble.Selection                       // ServerOptions.Select; may be nil
	invoke      func(context.Context, *server.ToolCall) (invoker.Output, error) // ServerOptions.Invoke

	mu    sync.Mutex
	parts map[*ensemble.Selection]*toolset // what callers with a selection see
}

func newGuard(o *ServerOptions) *guard {
	tokens := access.NewTokens(o.Token, o.Tokens)
	return &guard{
		credentials: access.Credentials{Tokens: tokens, Certificate: o.Certificate, TakesTokens: tokens.Configured() || o.Authenticate != nil},
		trusted:     o.Trusted, byToken: o.Authenticate, choose: o.Select, invoke: o.Invoke,
	}
}

// SetAccess changes who may call the server, and how often: it takes Authenticate, Token,
// Tokens, Certificate, Trusted, Select, Invoke, Rate, Burst and Parallel of the options, and
// ignores the rest. The next request is checked with them. Requests under way continue, with the
// values that they have. A stream of MCP whose credentials are not valid any longer, belong to
// another caller, or have other trusted values now, takes no further messages, and ends with
// UNAUTHENTICATED when its calls are answered. Whether connections need a certificate does not change.
func (s *Server) SetAccess(options *ServerOptions) {
	full := options.withDefaults()
	g := newGuard(&full)
	s.guard.Store(g)
	s.clients.SetLimits(access.Limits{Rate: full.Rate, Burst: full.Burst, Parallel: full.Parallel})
	s.waiting.Recheck()
}

var (
	errNotValid    = errors.New("the credentials are not valid any longer")
	errOtherValues = errors.New("the trusted values of the client have changed: connect again")
)

// addStream adds a stream of MCP until remove is called. It stops reading from the stream when
// the caller may not have it any longer.
func (s *Server) addStream(ctx context.Context, in *frameReader, from *caller) (of context.Context, remove func()) {
	var same atomic.Pointer[guard] // gives the caller the values that the stream has
	same.Store(from.by)
	of, remove = s.waiting.Open(ctx, func() error {
		v, err := s.guard.Load().authenticate(from.ctx)
		away, isFailure := errors.AsType[*invoker.Failure](err)
		switch {
		case isFailure && away.Code == invoker.Unavailable:
			return err
		case err != nil || v.identity != from.identity:
			return errNotValid
		case v.by != same.Load() && v.digest() != from.known.digest():
			return errOtherValues
		}
		same.Store(v.by)
		return nil
	})
	context.AfterFunc(of, func() { _ = in.Close() })
	if s.guard.Load() != from.by { // SetAccess has not seen the stream
		s.waiting.Recheck()
	}
	return of, remove
}

// identify returns the caller of a request. The error is a status that does not reveal
// why the credentials were rejected.
func (s *Server) identify(ctx context.Context) (*caller, error) {
	v, err := s.verify(ctx)
	if err != nil {
		return nil, err
	}
	ctx = invoker.WithTrusted(ctx, append(slices.Clip(v.by.trusted), v.sender.Values...)...)
	ctx = access.WithIdentity(v.sender.WithName(ctx), v.identity)
	accesslog.From(ctx).Identified(access.NameFrom(ctx))
	client := access.Client(v.identity, addressOf(ctx))
	return &caller{ctx: access.WithOrigin(ctx, access.Origin{Client: client}), identity: v.identity, client: client, by: v.by, known: v}, nil
}

// verdict is the result of checking the credentials of a request.
type verdict struct {
	sender   *access.Sender
	identity string
	by       *guard
}

// digest identifies the values of the caller, including the secret ones, which its identity may
// lack.
func (v *verdict) digest() string {
	all := append(slices.Clip(v.by.trusted), v.sender.Values...)
	isOpen := func(value invoker.Value) bool { return !value.IsSecret() }
	return access.Identity("", slices.DeleteFunc(slices.Clone(all), invoker.Value.IsSecret)) + " " +
		access.Identity("", slices.DeleteFunc(slices.Clone(all), isOpen))
}

type verdictKey struct{}

// verified checks the credentials of a request before the request is read. The returned
// context holds the result, so that identify does not check again.
func (s *Server) verified(ctx context.Context) (context.Context, error) {
	v, err := s.verify(s.options.Telemetry.Extract(ctx, received(ctx)))
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, verdictKey{}, v), nil
}

// verify checks the credentials of a request once, and again if SetAccess ran while the
// request arrived. The error is a status.
func (s *Server) verify(ctx context.Context) (*verdict, error) {
	g := s.guard.Load()
	if v, ok := ctx.Value(verdictKey{}).(*verdict); ok && v.by == g {
		return v, nil
	}
	v, err := g.authenticate(ctx)
	if err != nil {
		logevent.Log(ctx, s.refusals, zapcore.InfoLevel, "a request was refused", logevent.ServeRequestRefused, zap.String("from", access.Address(addressOf(ctx))), zap.Error(err))
		if failure, ok := errors.AsType[*invoker.Failure](err); ok && failure.Code == invoker.Denied {
			return nil, status.Error(codes.PermissionDenied, "the credentials do not allow this")
		} else if ok && failure.Code == invoker.Unavailable {
			return nil, status.Error(codes.Unavailable, "the credentials cannot be checked now")
		}
		return nil, status.Error(codes.Unauthenticated, "the credentials are missing or not valid")
	}
	return v, nil
}

// authenticate checks the credentials of a request. The error is the reason for refusing
// it.
func (g *guard) authenticate(ctx context.Context) (*verdict, error) {
	if !g.credentials.Required() {
		return &verdict{sender: &access.Sender{}, by: g}, nil
	}
	sender, err := g.credentials.Check(ctx, connectionOf(ctx), metadata.ValueFromIncomingContext(ctx, "authorization"), g.askToken(ctx))
	if err != nil {
		return nil, err
	}
	return &verdict{sender: sender, identity: access.Identity(sender.Key, sender.Values), by: g}, nil
}

func (g *guard) askToken(ctx context.Context) access.AskFunc {
	if g.byToken == nil {
		return nil
	}
	return func(token string) (string, []invoker.Value, error) { return g.byToken(ctx, token) }
}

// connectionOf returns the state of the TLS connection of a request; nil without TLS.
func connectionOf(ctx context.Context) *tls.ConnectionState {
	from, _ := peer.FromContext(ctx)
	if from == nil {
		return nil
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return &info.State
}

func addressOf(ctx context.Context) string {
	from, _ := peer.FromContext(ctx)
	if from == nil || from.Addr == nil {
		return ""
	}
	return from.Addr.String()
}
