// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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
}

// guard decides who may send requests. It does not change; [Server.SetAccess] sets
// another.
type guard struct {
	tokens        access.Tokens
	trusted       []invoker.Value                                                           // of every caller
	byToken       func(context.Context, string) (string, []invoker.Value, error)            // ServerOptions.Authenticate; may be nil
	byCertificate func(context.Context, *x509.Certificate) (string, []invoker.Value, error) // ServerOptions.Certificate; may be nil
	choose        func(context.Context) *ensemble.Selection                                 // ServerOptions.Select; may be nil
	invoke        func(context.Context, *server.ToolCall) (invoker.Output, error)           // ServerOptions.Invoke

	mu    sync.Mutex
	parts map[*ensemble.Selection]*toolset // what callers with a selection see
}

func newGuard(o *ServerOptions) *guard {
	return &guard{
		tokens: access.NewTokens(o.Token, o.Tokens), trusted: o.Trusted, byToken: o.Authenticate, byCertificate: o.Certificate, choose: o.Select,
		invoke: o.Invoke,
	}
}

// SetAccess changes who may call the server, and how often: it takes Authenticate, Token,
// Tokens, Certificate, Trusted, Select, Invoke, Rate, Burst and Parallel of the options, and
// ignores the rest. The next request is checked with them. Requests under way continue, with the
// values that they have. A stream of MCP whose credentials are not valid any longer, or
// belong to another caller, takes no further messages, and ends when its calls are
// answered. Whether connections need a certificate does not change.
func (s *Server) SetAccess(options *ServerOptions) {
	full := options.withDefaults()
	g := newGuard(&full)
	s.guard.Store(g)
	s.clients.SetLimits(access.Limits{Rate: full.Rate, Burst: full.Burst, Parallel: full.Parallel})
	s.mu.Lock()
	streams := maps.Clone(s.streams)
	s.mu.Unlock()
	for in, from := range streams {
		g.recheck(in, from)
	}
}

// recheck stops reading from a stream of MCP unless the caller may still have it.
func (g *guard) recheck(in *frameReader, from *caller) {
	if v, err := g.authenticate(from.ctx); err != nil || v.identity != from.identity {
		_ = in.Close()
	}
}

// addStream adds a stream of MCP until remove is called.
func (s *Server) addStream(in *frameReader, from *caller) (remove func()) {
	s.mu.Lock()
	s.streams[in] = from
	s.mu.Unlock()
	if g := s.guard.Load(); g != from.by { // SetAccess has not seen the stream
		g.recheck(in, from)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, in)
	}
}

var errNoIdentity = errors.New("the request has neither a bearer token nor a certificate")

// identify returns the caller of a request. The error is a status that does not reveal
// why the credentials were rejected.
func (s *Server) identify(ctx context.Context) (*caller, error) {
	v, err := s.verify(ctx)
	if err != nil {
		return nil, err
	}
	ctx = invoker.WithTrusted(ctx, append(slices.Clip(v.by.trusted), v.values...)...)
	ctx = access.WithIdentity(v.token.WithName(access.WithName(ctx, v.certificate)), v.identity)
	accesslog.From(ctx).Identified(access.NameFrom(ctx))
	client := access.Client(v.identity, addressOf(ctx))
	return &caller{ctx: access.WithOrigin(ctx, access.Origin{Client: client}), identity: v.identity, client: client, by: v.by}, nil
}

// verdict is the result of checking the credentials of a request.
type verdict struct {
	values      []invoker.Value
	certificate string        // its name; may be empty
	token       access.Bearer // zero without a token
	identity    string
	by          *guard
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
	v := &verdict{by: g}
	takesTokens := g.tokens.Configured() || g.byToken != nil
	if !takesTokens && g.byCertificate == nil {
		return v, nil
	}
	name := ""
	if certificate := certificateOf(ctx); certificate != nil && g.byCertificate != nil {
		if err := g.askCertificate(ctx, certificate, v); err != nil {
			return nil, err
		}
		name = "certificate " + fingerprint(certificate.Raw)
	}
	if headers := metadata.ValueFromIncomingContext(ctx, "authorization"); takesTokens && len(headers) > 0 {
		token, err := g.tokens.Check(headers, g.askToken(ctx))
		if err != nil {
			return nil, err
		}
		v.values, v.token, name = append(slices.Clip(v.values), token.Values...), *token, name+token.Key
	} else if name == "" {
		return nil, errNoIdentity
	}
	v.identity = access.Identity(name, v.values)
	return v, nil
}

// askCertificate calls ServerOptions.Certificate. A panic refuses the request.
func (g *guard) askCertificate(ctx context.Context, certificate *x509.Certificate, v *verdict) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check of the certificate panicked: %v", p)
		}
	}()
	v.certificate, v.values, err = g.byCertificate(ctx, certificate)
	return err
}

func (g *guard) askToken(ctx context.Context) access.AskFunc {
	if g.byToken == nil {
		return nil
	}
	return func(token string) (string, []invoker.Value, error) { return g.byToken(ctx, token) }
}

// certificateOf returns the client's certificate, if TLS has verified one.
func certificateOf(ctx context.Context) *x509.Certificate {
	from, _ := peer.FromContext(ctx)
	if from == nil {
		return nil
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 || len(info.State.VerifiedChains[0]) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

func addressOf(ctx context.Context) string {
	from, _ := peer.FromContext(ctx)
	if from == nil || from.Addr == nil {
		return ""
	}
	return from.Addr.String()
}

func fingerprint(of []byte) string {
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:8])
}
