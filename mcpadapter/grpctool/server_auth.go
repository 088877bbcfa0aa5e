// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
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
}

var errNoIdentity = errors.New("the request has neither a bearer token nor a certificate")

// identify returns the caller of a request. The error is a status that does not reveal
// why the credentials were rejected.
func (s *Server) identify(ctx context.Context) (*caller, error) {
	v, err := s.verify(ctx)
	if err != nil {
		return nil, err
	}
	ctx = invoker.WithTrusted(ctx, append(slices.Clip(s.options.Trusted), v.values...)...)
	ctx = s.tokens.WithName(access.WithName(ctx, v.certificate), v.token)
	accesslog.From(ctx).Identified(access.NameFrom(ctx))
	client := access.Client(v.identity, addressOf(ctx))
	return &caller{ctx: access.WithOrigin(ctx, access.Origin{Client: client}), identity: v.identity, client: client}, nil
}

// verdict is the result of checking the credentials of a request.
type verdict struct {
	values             []invoker.Value
	certificate, token string // the names of both; may be empty
	identity           string
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

// verify checks the credentials of a request at most once. The error is a status.
func (s *Server) verify(ctx context.Context) (*verdict, error) {
	if v, ok := ctx.Value(verdictKey{}).(*verdict); ok {
		return v, nil
	}
	v, err := s.authenticate(ctx)
	if err != nil {
		event.Log(ctx, s.refusals, zapcore.InfoLevel, "a request was refused", event.ServeRequestRefused, zap.String("from", access.Address(addressOf(ctx))), zap.Error(err))
		var failure *invoker.Failure
		if errors.As(err, &failure) && failure.Code == invoker.Denied {
			return nil, status.Error(codes.PermissionDenied, "the credentials do not allow this")
		}
		return nil, status.Error(codes.Unauthenticated, "the credentials are missing or not valid")
	}
	return v, nil
}

// authenticate checks the credentials of a request. The error is the reason for refusing
// it.
func (s *Server) authenticate(ctx context.Context) (*verdict, error) {
	o, v := &s.options, &verdict{}
	takesTokens := s.tokens.Configured() || o.Authenticate != nil
	if !takesTokens && o.Certificate == nil {
		return v, nil
	}
	name := ""
	if certificate := certificateOf(ctx); certificate != nil && o.Certificate != nil {
		if err := s.byCertificate(ctx, certificate, v); err != nil {
			return nil, err
		}
		name = "certificate " + fingerprint(certificate.Raw)
	}
	if headers := metadata.ValueFromIncomingContext(ctx, "authorization"); takesTokens && len(headers) > 0 {
		more, known, err := s.tokens.Check(headers, s.ask(ctx))
		if err != nil {
			return nil, err
		}
		v.values, v.token, name = append(slices.Clip(v.values), more...), known, name+known
	} else if name == "" {
		return nil, errNoIdentity
	}
	v.identity = access.Identity(name, v.values)
	return v, nil
}

// byCertificate calls ServerOptions.Certificate. A panic refuses the request.
func (s *Server) byCertificate(ctx context.Context, certificate *x509.Certificate, v *verdict) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check of the certificate panicked: %v", p)
		}
	}()
	v.certificate, v.values, err = s.options.Certificate(ctx, certificate)
	return err
}

func (s *Server) ask(ctx context.Context) func(token string) ([]invoker.Value, error) {
	if s.options.Authenticate == nil {
		return nil
	}
	return func(token string) ([]invoker.Value, error) { return s.options.Authenticate(ctx, token) }
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
