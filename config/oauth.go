// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/http"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/clean"
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/login"
)

// Grant is how a client gets its tokens.
type Grant string

// The grants.
const (
	GrantCode    Grant = "authorization_code" // a person logs in
	GrantMachine Grant = "client_credentials" // the client logs in by itself
)

// OAuth is the login at a server. The zero value lets a person log in, with a client that
// registers itself. [login.Options] has the details.
type OAuth struct {
	Grant          Grant // default GrantCode
	Issuer         values.Value
	ClientID       values.Value
	ClientSecret   values.Value
	ClientMetadata values.Value
	RedirectURL    values.Value
	Scopes         []string
	// Per says whose login a call uses: "server" (default) has one for everybody. With
	// "identity", each client that is served over HTTP or gRPC has its own, and the login of
	// the program's user only lists what there is.
	Per string
}

func (a *OAuth) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("grant", grammar.Choice(&a.Grant, GrantCode, GrantMachine)),
		grammar.Key("issuer", grammar.Address(&a.Issuer)),
		grammar.Key("client_id", grammar.Expanded(&a.ClientID)),
		grammar.Key("client_secret", grammar.Secret(&a.ClientSecret)),
		grammar.Key("client_metadata_url", grammar.Address(&a.ClientMetadata)),
		grammar.Key("redirect_url", grammar.Address(&a.RedirectURL)),
		grammar.Key("scopes", grammar.Each(&a.Scopes, grammar.Text)),
		grammar.Key("per", grammar.Choice(&a.Per, "server", perIdentity)),
	}
}

const perIdentity = "identity" // OAuth.Per

// check validates the table as a whole.
func (a *OAuth) check(r *grammar.Reader, n *document.Node) {
	id, secret := n.Member("client_id"), n.Member("client_secret")
	switch {
	case a.Grant == GrantMachine && id == nil:
		r.Missing(n, "client_id", "missing: with grant = %q, the client logs in with its own ID and secret", GrantMachine)
	case a.Grant == GrantMachine && secret == nil:
		r.Missing(n, "client_secret", `missing: with grant = %q, the client logs in with its own ID and secret, such as client_secret = "env:CLIENT_SECRET"`, GrantMachine)
	case secret != nil && id == nil:
		r.Missing(n, "client_id", "missing: expected the ID that client_secret belongs to")
	case secret != nil && n.Member("issuer") == nil:
		r.Missing(n, "issuer", "missing: expected the address of the authorization server that client_secret belongs to, so that it is sent to no other")
	}
	for _, key := range []string{"client_metadata_url", "redirect_url", "per"} {
		if stray := n.Member(key); stray != nil && a.Grant == GrantMachine {
			r.WrongKey(stray, "not with grant = %q: remove it", GrantMachine)
		}
	}
}

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
	return &login.Options{
		URL:            s.URL.Reveal(),
		Headers:        reveal(s.Headers),
		Issuer:         a.Issuer.Reveal(),
		ClientID:       a.ClientID.Reveal(),
		ClientSecret:   login.Secret(a.ClientSecret.Reveal()),
		ClientMetadata: a.ClientMetadata.Reveal(),
		RedirectURL:    a.RedirectURL.Reveal(),
		Scopes:         a.Scopes,
		Machine:        a.Grant == GrantMachine,
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
	o.loggedIn(client.Server, logins)
	shared := withLogin(open, options, with.URL, logins)
	if s.OAuth.Per != perIdentity {
		return shared, nil
	}
	return o.perIdentity(shared, open, options, with), nil
}

// openFunc makes the source of a server at an address.
type openFunc = func(url string, options *mcpadapter.HTTPOptions) ensemble.Source

// withLogin makes a source that sends the tokens of a login.
func withLogin(open openFunc, options *mcpadapter.HTTPOptions, url string, logins *login.Client) ensemble.Source {
	own := *options
	own.Token, own.OAuth = logins.Token, logins
	return clean.Source(open(url, &own), logins.Redact, nil)
}
