// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"github.com/consort-go/consort/mcpadapter/server/oidc"
)

// OIDC describes the access tokens of an issuer that identify clients. [oidc.Options] has the
// details.
type OIDC struct {
	Issuer   values.Value
	Audience values.Value
	Scopes   []string
	// Name is the claim with the name of the client; default sub.
	Name string
	// Trusted are the claims that become trusted values, by the name of the value.
	Trusted map[string]string
}

func (o *OIDC) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("issuer", grammar.Address(&o.Issuer)),
		grammar.Key("audience", grammar.Expanded(&o.Audience)),
		grammar.Key("scopes", grammar.Each(&o.Scopes, grammar.Text)),
		grammar.Key("name", grammar.Text(&o.Name)),
		grammar.Key("trusted", grammar.ByName(&o.Trusted, grammar.Text[string], plaintext.TrustedName)),
	}
}

func (o *OIDC) check(r *grammar.Reader, n *document.Node) {
	issuer, audience := n.Member("issuer"), n.Member("audience")
	if issuer == nil {
		r.Missing(n, "issuer", `missing: expected the address of the authorization server, such as issuer = "https://login.example.com"`)
	}
	if audience == nil {
		r.Missing(n, "audience", `missing: expected what the claim aud of tokens for this server contains, such as audience = "https://tools.example.com/mcp"`)
	}
	trusted := n.Member("trusted")
	for _, name := range []string{"iss", "sub"} {
		if trusted != nil && trusted.Member(name) != nil {
			r.WrongKey(trusted.Member(name), "the claims iss and sub are always trusted values, with their own names: choose another name, or remove it")
		}
	}
	if o.Issuer.Reveal() == "" || o.Audience.Reveal() == "" {
		return
	}
	if _, err := oidc.New(&oidc.Options{Issuer: o.Issuer.Reveal(), Audience: o.Audience.Reveal()}); err != nil {
		r.Wrong(issuer, "%s", err)
	}
}

// metadata returns the information for clients about tokens: the table resource_metadata,
// completed from the table oidc. It is nil if the URL of the server is not known.
func (s *Serve) metadata() *mcpserver.ResourceMetadata {
	var m mcpserver.ResourceMetadata
	if own := s.ResourceMetadata; own != nil {
		m.Resource, m.Scopes = own.Resource.Reveal(), own.Scopes
		for _, issuer := range own.AuthorizationServers {
			m.AuthorizationServers = append(m.AuthorizationServers, issuer.Reveal())
		}
	}
	if s.OIDC != nil {
		audience := s.OIDC.Audience.Reveal()
		if m.Resource == "" && (strings.HasPrefix(audience, "https://") || strings.HasPrefix(audience, "http://")) {
			m.Resource = audience
		}
		if len(m.AuthorizationServers) == 0 {
			m.AuthorizationServers = []string{s.OIDC.Issuer.Reveal()}
		}
		if len(m.Scopes) == 0 {
			m.Scopes = s.OIDC.Scopes
		}
	}
	if m.Resource == "" {
		return nil
	}
	return &m
}

// byIssuer makes servers check the tokens of the issuer.
func (s *Serve) byIssuer(a *Assembly, o *mcpserver.Options, rpc *grpctool.ServerOptions) error {
	o.Authenticate, rpc.Authenticate = nil, nil
	if s.OIDC == nil {
		return nil
	}
	verifier, err := a.shared.verifierFor(&oidc.Options{
		Issuer: s.OIDC.Issuer.Reveal(), Audience: s.OIDC.Audience.Reveal(), Scopes: s.OIDC.Scopes,
		Name: s.OIDC.Name, Trusted: s.OIDC.Trusted, Logger: a.Logger,
	})
	if err != nil {
		return grammar.About("serve.oidc", err)
	}
	rpc.Authenticate = func(ctx context.Context, token string) (string, []invoker.Value, error) {
		name, values, err := verifier.Verify(ctx, token)
		if err == nil && slices.ContainsFunc(s.Clients, func(c Client) bool { return c.Name == name }) {
			err = fmt.Errorf("the claim %s of the token is %q, the name of another client in serve.clients", cmp.Or(s.OIDC.Name, "sub"), name)
		}
		return name, values, err
	}
	o.Authenticate = func(ctx context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
		return rpc.Authenticate(ctx, token)
	}
	return nil
}

// verifierFor returns the verifier of the assembly before if its options are the same, so
// that the keys of the issuer need not be fetched again.
func (s *shared) verifierFor(o *oidc.Options) (*oidc.Verifier, error) {
	s.verifying.Lock()
	defer s.verifying.Unlock()
	before := s.verified
	before.Logger = o.Logger
	if s.verifier != nil && reflect.DeepEqual(before, *o) {
		return s.verifier, nil
	}
	verifier, err := oidc.New(o)
	if err == nil {
		s.verifier, s.verified = verifier, *o
	}
	return verifier, err
}
