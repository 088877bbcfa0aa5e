// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

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
					client, err := clientFor(identity)
					if err != nil {
						return nil, err
					}
					return client.Begin(ctx, callback)
				},
			})
		},
	})
}

// exchanging returns a source that calls a server with a token for each identity, for which
// the token of its client is exchanged.
func (o *AssembleOptions) exchanging(shared ensemble.Source, open openFunc, options *mcpadapter.HTTPOptions, s *Server) ensemble.Source {
	var newest sync.Map // the last token of each identity
	return identityconn.Source(shared, &identityconn.Options{
		Server: options.Server,
		Identity: func(ctx context.Context) (identity string, ok bool) {
			identity, ok = o.identityOf(ctx)
			if token := access.TokenFrom(ctx); ok && token != "" {
				newest.Store(identity, token)
			}
			return identity, ok
		},
		Open: func(_ context.Context, identity string) (ensemble.Source, func(), error) {
			with := s.LoginOptions()
			with.Identity, with.Logger = identity, o.Logger
			s.OAuth.actFor(with, func(context.Context) (login.Subject, error) {
				token, ok := newest.Load(identity)
				if !ok {
					return login.Subject{}, errors.New("the client did not come with a token of an issuer, which could be exchanged")
				}
				return login.Subject{Token: login.Secret(token.(string)), Type: s.OAuth.SubjectType}, nil
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
		Identify: func(next http.Handler) http.Handler {
			s.loggingIn.Lock()
			defer s.loggingIn.Unlock()
			return s.identify(next)
		},
	})
}
