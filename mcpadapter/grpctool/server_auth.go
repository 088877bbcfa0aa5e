// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// caller is who sent a request.
type caller struct {
	ctx      context.Context // with the trusted values
	identity string          // empty where nobody has one
	client   string          // whose load the request is
}

var (
	errNoIdentity = errors.New("there is neither a bearer token nor a certificate")
	errWrongToken = errors.New("the bearer token is not one of this server's")
	errExpired    = errors.New("the bearer token has expired")
)

// identify returns who sent a request. The error is a status, which does not
// say what exactly was wrong.
func (s *Server) identify(ctx context.Context) (*caller, error) {
	from := &caller{client: "ip " + addressOf(ctx)}
	values, identity, err := s.authenticate(ctx)
	if err != nil {
		s.log.Info("a request was refused", zap.String("from", from.client), zap.Error(err))
		var failure *invoker.Failure
		if errors.As(err, &failure) && failure.Code == invoker.Denied {
			return nil, status.Error(codes.PermissionDenied, "the credentials do not allow this")
		}
		return nil, status.Error(codes.Unauthenticated, "the credentials are missing, or are not good")
	}
	from.ctx = invoker.WithTrusted(ctx, append(s.options.Trusted[:len(s.options.Trusted):len(s.options.Trusted)], values...)...)
	if from.identity = identity; identity != "" {
		from.client = "id " + identity
	}
	return from, nil
}

// authenticate checks what a request says of its sender: the values and an
// identity, or why it is refused.
func (s *Server) authenticate(ctx context.Context) (values []invoker.Value, identity string, err error) {
	defer func() { // of a function of the options
		if p := recover(); p != nil {
			err = fmt.Errorf("authentication panicked: %v", p)
		}
	}()
	o := &s.options
	takesTokens := o.Token != "" || len(o.Tokens) > 0 || o.Authenticate != nil
	if !takesTokens && o.Certificate == nil {
		return nil, "", nil
	}
	if certificate := certificateOf(ctx); certificate != nil && o.Certificate != nil {
		if values, err = o.Certificate(ctx, certificate); err != nil {
			return nil, "", err
		}
		identity = "certificate " + fingerprint(certificate.Raw)
	}
	token, sent, err := tokenOf(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case takesTokens && sent:
		more, name, err := s.byToken(ctx, token)
		return append(values, more...), identity + name, err
	case identity == "":
		return nil, "", errNoIdentity
	}
	return values, identity, nil
}

// byToken checks a token. The name tells its clients from others.
func (s *Server) byToken(ctx context.Context, token string) (values []invoker.Value, name string, err error) {
	if known := s.options.known(token); known != nil {
		if !known.Expires.IsZero() && !time.Now().Before(known.Expires) {
			return nil, "", errExpired
		}
		return known.Trusted, "token " + known.Name, nil
	}
	if s.options.Authenticate == nil {
		return nil, "", errWrongToken
	}
	if values, err = s.options.Authenticate(ctx, token); len(values) == 0 {
		return nil, "token " + fingerprint([]byte(token)), err // nothing else tells who it is
	}
	return values, "values " + identityOf(values), err
}

// known returns the static token that was sent. All are compared, as hashes of
// one length, so that the time it takes tells nothing.
func (o *ServerOptions) known(token string) *BearerToken {
	sent := sha256.Sum256([]byte(token))
	var found *BearerToken
	check := func(t BearerToken) {
		if sum := sha256.Sum256([]byte(t.Token)); t.Token != "" && subtle.ConstantTimeCompare(sent[:], sum[:]) == 1 && found == nil {
			found = &t
		}
	}
	check(BearerToken{Token: o.Token})
	for _, t := range o.Tokens {
		check(t)
	}
	if found != nil && found.Name == "" {
		found.Name = fingerprint(sent[:])
	}
	return found
}

// tokenOf returns the bearer token of a request (RFC 6750, § 2.1).
func tokenOf(ctx context.Context) (token string, sent bool, err error) {
	header := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(header) == 0 {
		return "", false, nil
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	if token = strings.TrimSpace(token); len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", true, errors.New("the metadata authorization is no bearer token")
	}
	return token, true, nil
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
	host, _, err := net.SplitHostPort(from.Addr.String())
	if err != nil {
		return from.Addr.String()
	}
	return host
}

// identityOf is one text for the same values, which does not show them.
func identityOf(values []invoker.Value) string {
	sum := sha256.New()
	for _, value := range invoker.TrustedFrom(invoker.WithTrusted(context.Background(), values...)) {
		text, err := value.Reveal()
		if err != nil {
			continue
		}
		fmt.Fprintf(sum, "%d %s %d %s\n", len(value.Name()), value.Name(), len(text), text)
	}
	return fingerprint(sum.Sum(nil))
}

func fingerprint(of []byte) string {
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:8])
}
