// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/identityconn"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/login"
)

// perIdentity returns a source that calls a server with the login of each identity.
func (o *AssembleOptions) perIdentity(shared ensemble.Source, open openFunc, options *mcpadapter.HTTPOptions, with *login.Options) ensemble.Source {
	common := *with
	if common.Store == nil {
		common.Store = login.NewMemory()
	}
	clientFor := func(identity string) (*login.Client, error) {
		own := common
		own.Identity, own.Hint = identity, ""
		return login.New(&own)
	}
	begin := func(ctx context.Context, identity, callback string) (*login.Redirect, error) {
		client, err := clientFor(identity)
		if err != nil {
			return nil, err
		}
		return client.Begin(ctx, callback)
	}
	o.logsIn[options.Server] = loginpages.Server{Kind: loginpages.Own, Begin: begin}
	return identityconn.Source(shared, &identityconn.Options{
		Server: options.Server, Identity: o.identityOf,
		Open: func(_ context.Context, identity string) (ensemble.Source, func(), error) {
			client, err := clientFor(identity)
			if err != nil {
				return nil, nil, err
			}
			return withLogin(open, options, common.URL, client), func() { _ = client.Close() }, nil
		},
		Login: func(ctx context.Context, identity string, call *invoker.Call, cause error) error {
			return o.loginPages.Login(ctx, loginpages.Request{
				Server: options.Server, Client: access.NameFrom(ctx), Identity: identity, Call: call,
				Begin: func(ctx context.Context, callback string) (*login.Redirect, error) {
					return begin(ctx, identity, callback)
				},
			})
		},
	})
}

// exchanging returns a source that calls a server with a token for each token of a client,
// which is exchanged for it. Two tokens of one identity may have different rights, so that they
// have a connection each.
func (o *AssembleOptions) exchanging(shared ensemble.Source, open openFunc, options *mcpadapter.HTTPOptions, s *Server) ensemble.Source {
	return identityconn.Source(shared, &identityconn.Options{
		Server: options.Server,
		Identity: func(ctx context.Context) (identity string, ok bool) {
			identity, ok = o.identityOf(ctx)
			if token := access.TokenFrom(ctx); ok && token != "" {
				hash := sha256.Sum256([]byte(token))
				identity += "\x00" + string(hash[:])
			}
			return identity, ok
		},
		Open: func(ctx context.Context, _ string) (ensemble.Source, func(), error) {
			token := access.TokenFrom(ctx)
			with := s.LoginOptions()
			with.Identity, _ = o.identityOf(ctx)
			with.Logger = o.Logger
			s.OAuth.actFor(with, func(context.Context) (login.Subject, error) {
				if token == "" {
					return login.Subject{}, errors.New("the client did not come with a token of an issuer, which could be exchanged")
				}
				return login.Subject{Token: login.Secret(token), Type: s.OAuth.SubjectType}, nil
			})
			client, err := login.New(with)
			if err != nil {
				return nil, nil, err
			}
			return withLogin(open, options, with.URL, client), func() { _ = client.Close() }, nil
		},
	})
}

// identityOf returns the identity whose login a call uses: empty for the user of the
// program. Clients of an issuer are known by the claims iss and sub, whatever else is known
// about them.
func (o *AssembleOptions) identityOf(ctx context.Context) (identity string, ok bool) {
	if !o.ForClients {
		return "", true
	}
	iss, issued := invoker.TrustedValue(ctx, "iss")
	sub, named := invoker.TrustedValue(ctx, "sub")
	if issued && named {
		return access.Identity("", []invoker.Value{iss, sub}), true
	}
	identity = access.IdentityFrom(ctx)
	return identity, identity != ""
}

// LoginPages returns the handler of the pages at which clients log in for themselves, for
// the paths that begin with /login/. identify is the check of the server's requests, and
// address, such as http://127.0.0.1:8080, where browsers reach the server if the
// configuration does not say so.
func (a *Assembly) LoginPages(address string, identify func(next http.Handler) http.Handler) http.Handler {
	s := a.shared
	s.loggingIn.Lock()
	s.pagesAt, s.identify = address, identify
	s.loggingIn.Unlock()
	return s.pages
}

// newLoginPages returns the pages of an assembly and its successors.
func (s *shared) newLoginPages(o *AssembleOptions) *loginpages.Pages {
	return loginpages.New(&loginpages.Options{
		Logger: o.Logger, Identity: o.identityOf,
		Base: func() string {
			if newest := s.latest.Load(); newest != nil && newest.Serve != nil && newest.Serve.ResourceMetadata != nil {
				if u, err := url.Parse(newest.Serve.ResourceMetadata.Resource); err == nil && u.Host != "" {
					return u.Scheme + "://" + u.Host
				}
			}
			s.loggingIn.Lock()
			defer s.loggingIn.Unlock()
			return s.pagesAt
		},
		Servers: func() map[string]loginpages.Server {
			if newest := s.latest.Load(); newest != nil {
				return newest.logsIn
			}
			return nil
		},
		SignsIn: func() bool { return s.latest.Load().signsIn() },
		SignIn: func(ctx context.Context, callback string) (*login.Redirect, error) {
			return s.latest.Load().signIn(ctx, callback)
		},
		Identify: func(next http.Handler) http.Handler {
			s.loggingIn.Lock()
			defer s.loggingIn.Unlock()
			return s.identify(next)
		},
	})
}

// signsIn reports whether people can show who they are at the issuer of their tokens.
func (a *Assembly) signsIn() bool {
	return a != nil && a.issuer != nil && a.issuer.ClientID.Reveal() != "" && a.Serve.ResourceMetadata != nil
}

// signIn begins a login at the issuer of clients' tokens, whose result is a token for the gateway
// itself.
func (a *Assembly) signIn(ctx context.Context, callback string) (*login.Redirect, error) {
	if !a.signsIn() {
		return nil, errors.New("people cannot log in at the issuer: set serve.oidc.client_id")
	}
	o, own := a.issuer, a.Serve.ResourceMetadata
	issuer := o.Issuer.Reveal()
	client, err := login.New(&login.Options{
		URL: own.Resource, Issuer: issuer, ClientID: o.ClientID.Reveal(), ClientSecret: login.Secret(o.ClientSecret.Reveal()),
		Scopes: own.Scopes, Logger: a.Logger,
		HTTP: &http.Client{Transport: &ownMetadata{resource: own.Resource, issuer: issuer, next: ownTransport()}},
	})
	if err != nil {
		return nil, err
	}
	return client.Begin(ctx, callback)
}

// ownMetadata answers the requests for the metadata of the gateway itself, which may not reach
// its own address, and passes on all others.
type ownMetadata struct {
	resource, issuer string
	next             http.RoundTripper
}

// ownTransport returns a transport whose idle connections can be closed.
func ownTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return http.DefaultTransport
}

// CloseIdleConnections closes the idle connections of the transport; see [http.Client.CloseIdleConnections].
func (m *ownMetadata) CloseIdleConnections() {
	(&http.Client{Transport: m.next}).CloseIdleConnections()
}

func (m *ownMetadata) RoundTrip(r *http.Request) (*http.Response, error) {
	own, err := url.Parse(m.resource)
	switch {
	case err != nil || r.URL.Scheme != own.Scheme || r.URL.Host != own.Host:
	case r.URL.Path == own.Path:
		return m.answer(r, http.StatusUnauthorized, "")
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
		text, err := json.Marshal(map[string]any{"resource": m.resource, "authorization_servers": []string{m.issuer}})
		if err != nil {
			return nil, err
		}
		return m.answer(r, http.StatusOK, string(text))
	}
	return m.next.RoundTrip(r)
}

func (m *ownMetadata) answer(r *http.Request, status int, text string) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}
