// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"net/http"

	"github.com/consort-go/consort/config/internal/clean"
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/login"
)

// The grants.
const (
	grantCode       = "authorization_code"
	grantMachine    = "client_credentials"
	grantExchange   = "token_exchange"
	grantEnterprise = "enterprise"
	grantAssertion  = "jwt_bearer"
)

// OAuth is the login at a server. The zero value lets a person log in, with a client that
// registers itself. [login.Options] has the details.
type OAuth struct {
	// Grant is how the client gets its tokens: "authorization_code" (default) lets a person
	// log in, and with "client_credentials" the client logs in by itself. "token_exchange"
	// exchanges the token of each client that is served (RFC 8693), "enterprise" does so at
	// the identity provider of an organization (SEP-990), and "jwt_bearer" presents a signed
	// token, such as that of a workload (RFC 7523).
	Grant          string
	Issuer         values.Value
	ClientID       values.Value
	ClientSecret   values.Value
	ClientKey      values.Value
	ClientMetadata values.Value
	RedirectURL    values.Value
	Scopes         []string
	// Per says whose login a call uses: "server" (default) has one for everybody. With
	// "identity", each client that is served over HTTP or gRPC has its own, and the login of
	// the program's user only lists what there is.
	Per string
	// SubjectToken is the token that is exchanged for the program's own user, and SubjectType
	// its type. Clients that are served use the token with which they came.
	SubjectToken values.Value
	SubjectType  string
	Audience     values.Value
	// Provider is where the grant "enterprise" gets its grants.
	Provider *IdentityProvider
}

// IdentityProvider is the identity provider of an organization; see [login.Provider].
type IdentityProvider struct {
	Issuer       values.Value
	ClientID     values.Value
	ClientSecret values.Value
}

func (p *IdentityProvider) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("issuer", grammar.Address(&p.Issuer)),
		grammar.Key("client_id", grammar.Expanded(&p.ClientID)),
		grammar.Key("client_secret", grammar.Secret(&p.ClientSecret)),
	}
}

func (p *IdentityProvider) check(r *grammar.Reader, n *document.Node) {
	for key, what := range map[string]string{"issuer": "the address of the identity provider", "client_id": "the ID of this client there"} {
		if n.Member(key) == nil {
			r.Missing(n, key, "missing: expected %s", what)
		}
	}
}

func (a *OAuth) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("grant", grammar.Choice(&a.Grant, grantCode, grantMachine, grantExchange, grantEnterprise, grantAssertion)),
		grammar.Key("issuer", grammar.Address(&a.Issuer)),
		grammar.Key("client_id", grammar.Expanded(&a.ClientID)),
		grammar.Key("client_secret", grammar.Secret(&a.ClientSecret)),
		grammar.Key("client_metadata_url", grammar.Address(&a.ClientMetadata)),
		grammar.Key("redirect_url", grammar.Address(&a.RedirectURL)),
		grammar.Key("scopes", grammar.Each(&a.Scopes, grammar.Text)),
		grammar.Key("client_key", grammar.Secret(&a.ClientKey)),
		grammar.Key("subject_token", grammar.Secret(&a.SubjectToken)),
		grammar.Key("subject_type", grammar.Text(&a.SubjectType)),
		grammar.Key("audience", grammar.Expanded(&a.Audience)),
		grammar.Key("identity_provider", grammar.Optional(&a.Provider, func(p *IdentityProvider) grammar.Kind { return grammar.Table(p.fields(), p.check) })),
		grammar.Key("per", grammar.Choice(&a.Per, "server", perIdentity)),
	}
}

const perIdentity = "identity" // OAuth.Per

// check validates the table as a whole.
func (a *OAuth) check(r *grammar.Reader, n *document.Node) {
	id, secret, key := n.Member("client_id"), n.Member("client_secret"), n.Member("client_key")
	exchanges := a.exchanges()
	switch {
	case (a.Grant == grantMachine || exchanges) && id == nil:
		r.Missing(n, "client_id", "missing: with grant = %q, the client logs in with its own ID", a.Grant)
	case a.Grant == grantMachine && secret == nil && key == nil:
		r.Missing(n, "client_secret", `missing: with grant = %q, the client logs in with its own ID and secret, such as client_secret = "env:CLIENT_SECRET", or a client_key`, grantMachine)
	case secret != nil && key != nil:
		r.WrongKey(key, "a client has either client_secret or client_key, not both: remove one")
	case secret != nil && id == nil, key != nil && id == nil:
		r.Missing(n, "client_id", "missing: expected the ID that client_secret or client_key belongs to")
	case secret != nil && n.Member("issuer") == nil:
		r.Missing(n, "issuer", "missing: expected the address of the authorization server that client_secret belongs to, so that it is sent to no other")
	case (a.Grant == grantExchange || a.Grant == grantAssertion) && n.Member("issuer") == nil:
		r.Missing(n, "issuer", "missing: expected the address of the authorization server that gets the token of the user, so that it is sent to no other")
	case exchanges && n.Member("subject_token") == nil && secret == nil && key == nil:
		r.Missing(n, "client_secret", "missing: with grant = %q, the tools are listed with client_secret or client_key, or with a subject_token", a.Grant)
	case a.Grant == grantAssertion && n.Member("subject_token") == nil:
		r.Missing(n, "subject_token", `missing: expected the signed token, such as subject_token = "env:WORKLOAD_TOKEN"`)
	case a.Grant == grantEnterprise && n.Member("identity_provider") == nil:
		r.Missing(n, "identity_provider", "missing: expected a table with the issuer, and the client_id there, of the identity provider")
	}
	for key, fits := range map[string]bool{
		"client_metadata_url": a.StoresLogins(), "redirect_url": a.StoresLogins(), "per": a.StoresLogins(),
		"subject_token": exchanges || a.Grant == grantAssertion, "subject_type": exchanges,
		"audience": a.Grant == grantExchange, "identity_provider": a.Grant == grantEnterprise,
	} {
		if stray := n.Member(key); stray != nil && !fits {
			r.WrongKey(stray, "not with grant = %q: remove it", cmp.Or(a.Grant, grantCode))
		}
	}
}

// StoresLogins reports whether people log in, so that tokens are stored.
func (a *OAuth) StoresLogins() bool { return a.Grant == "" || a.Grant == grantCode }

// exchanges reports whether the tokens of clients are exchanged.
func (a *OAuth) exchanges() bool { return a.Grant == grantExchange || a.Grant == grantEnterprise }

// authorized checks a server's login against the rest of its table.
func (s *Server) authorized(r *grammar.Reader, n *document.Node) {
	headers := n.Member("headers")
	if s.OAuth == nil || headers == nil {
		return
	}
	for _, member := range headers.Members() {
		if http.CanonicalHeaderKey(member.Key) == "Authorization" {
			r.WrongKey(member, "a server has either this header or a table oauth, not both: remove one")
		}
	}
}

// LoginOptions returns the options of the login at a server, without Store and Hint; nil
// without a table oauth.
func (s *Server) LoginOptions() *login.Options {
	a := s.OAuth
	if a == nil {
		return nil
	}
	options := &login.Options{
		URL:            s.URL.Reveal(),
		Headers:        reveal(s.Headers),
		Issuer:         a.Issuer.Reveal(),
		ClientID:       a.ClientID.Reveal(),
		ClientSecret:   login.Secret(a.ClientSecret.Reveal()),
		ClientKey:      login.Secret(a.ClientKey.Reveal()),
		ClientMetadata: a.ClientMetadata.Reveal(),
		RedirectURL:    a.RedirectURL.Reveal(),
		Scopes:         a.Scopes,
		Machine:        a.Grant == grantMachine,
	}
	switch token := a.SubjectToken.Reveal(); {
	case a.Grant == grantAssertion, a.exchanges() && token != "":
		a.actFor(options, func(context.Context) (login.Subject, error) {
			return login.Subject{Token: login.Secret(token), Type: a.SubjectType}, nil
		})
	case a.exchanges(): // what there is, is listed by the client itself
		options.Machine = true
	}
	return options
}

// actFor sets the options of a client that acts for the subject that get returns.
func (a *OAuth) actFor(o *login.Options, get func(context.Context) (login.Subject, error)) {
	o.Machine, o.Subject, o.Audience, o.Assertion = false, get, a.Audience.Reveal(), a.Grant == grantAssertion
	if p := a.Provider; p != nil {
		o.Provider = &login.Provider{Issuer: p.Issuer.Reveal(), ClientID: p.ClientID.Reveal(), ClientSecret: login.Secret(p.ClientSecret.Reveal())}
	}
}

// overHTTP makes the source of a server that is reached over HTTP.
func (s *Server) overHTTP(o *AssembleOptions, client *mcpadapter.ClientOptions, open openFunc) (ensemble.Source, error) {
	options := &mcpadapter.HTTPOptions{ClientOptions: *client, Headers: reveal(s.Headers), TrustedHeaders: s.TrustedHeaders}
	with := s.LoginOptions()
	if with == nil { // no login
		return open(s.URL.Reveal(), options), nil
	}
	with.Store, with.Logger = o.Logins, o.Logger
	if o.LoginHint != nil {
		with.Hint = o.LoginHint(client.Server)
	}
	logins, err := login.New(with)
	if err != nil {
		return nil, grammar.About("oauth", err)
	}
	o.loggedIn(logins)
	if s.OAuth.StoresLogins() {
		begin := func(ctx context.Context, _, callback string) (*login.Redirect, error) {
			return logins.Begin(ctx, callback)
		}
		o.logsIn[client.Server] = loginpages.Server{Kind: loginpages.Shared, Begin: begin}
	}
	shared := withLogin(open, options, with.URL, logins)
	switch {
	case s.OAuth.Per == perIdentity:
		return o.perIdentity(shared, open, options, with), nil
	case s.OAuth.exchanges():
		return o.exchanging(shared, open, options, s), nil
	}
	return shared, nil
}

// openFunc makes the source of a server at an address.
type openFunc = func(url string, options *mcpadapter.HTTPOptions) ensemble.Source

// withLogin makes a source that sends the tokens of a login.
func withLogin(open openFunc, options *mcpadapter.HTTPOptions, url string, logins *login.Client) ensemble.Source {
	own := *options
	own.Token, own.OAuth = logins.Token, logins
	return clean.Source(open(url, &own), logins.Redact, nil)
}
