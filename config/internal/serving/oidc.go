// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"github.com/consort-go/consort/mcpadapter/server/oidc"
)

func oidcFields(o *serve.OIDC) []grammar.Field {
	return []grammar.Field{
		grammar.Key("issuer", grammar.Address(&o.Issuer)),
		grammar.Key("audience", grammar.Expanded(&o.Audience)),
		grammar.Key("scopes", grammar.Each(&o.Scopes, grammar.Text)),
		grammar.Key("name", grammar.Text(&o.Name)),
		grammar.Key("trusted", grammar.ByName(&o.Trusted, grammar.Text[string], plaintext.TrustedName)),
		grammar.Key("client_id", grammar.Expanded(&o.ClientID)),
		grammar.Key("client_secret", grammar.Secret(&o.ClientSecret)),
	}
}

func checkOIDC(o *serve.OIDC, r *grammar.Reader, n *document.Node) {
	issuer, audience := n.Member("issuer"), n.Member("audience")
	if issuer == nil {
		r.Missing(n, "issuer", `missing: expected the address of the authorization server, such as issuer = "https://login.example.com"`)
	}
	if audience == nil {
		r.Missing(n, "audience", `missing: expected what the claim aud of tokens for this server contains, such as audience = "https://tools.example.com/mcp"`)
	}
	if n.Member("client_secret") != nil && n.Member("client_id") == nil {
		r.Missing(n, "client_id", "missing: expected the ID that client_secret belongs to")
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
func (s offer) metadata() *mcpserver.ResourceMetadata {
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
func (s offer) byIssuer(with *Options, made *Servers) error {
	made.MCP.Authenticate, made.GRPC.Authenticate = nil, nil
	if s.OIDC == nil {
		return nil
	}
	verifier, err := with.Issuer.verifierFor(&oidc.Options{
		Issuer: s.OIDC.Issuer.Reveal(), Audience: s.OIDC.Audience.Reveal(), Scopes: s.OIDC.Scopes,
		Name: s.OIDC.Name, Trusted: s.OIDC.Trusted, Logger: with.Logger,
	})
	if err != nil {
		return grammar.About("serve.oidc", err)
	}
	made.GRPC.Authenticate = func(ctx context.Context, token string) (string, []invoker.Value, error) {
		name, trusted, err := verifier.Verify(ctx, token)
		if err == nil && slices.ContainsFunc(s.Clients, func(c serve.Client) bool { return c.Name == name }) {
			err = fmt.Errorf("the claim %s of the token is %q, the name of another client in serve.clients", cmp.Or(s.OIDC.Name, "sub"), name)
		}
		return name, trusted, err
	}
	made.MCP.Authenticate = func(ctx context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
		return made.GRPC.Authenticate(ctx, token)
	}
	return nil
}

// An Issuer keeps the verifier of tokens in use, so that the keys of their issuer need not be
// fetched again when the configuration changes elsewhere. The zero value is ready for use.
type Issuer struct {
	mu       sync.Mutex // guards the rest
	verifier *oidc.Verifier
	options  oidc.Options // of verifier
}

// verifierFor returns the verifier in use if its options are the same, or else a new one.
func (i *Issuer) verifierFor(o *oidc.Options) (*oidc.Verifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.options
	before.Logger = o.Logger
	if i.verifier != nil && reflect.DeepEqual(before, *o) {
		return i.verifier, nil
	}
	verifier, err := oidc.New(o)
	if err == nil {
		i.verifier, i.options = verifier, *o
	}
	return verifier, err
}
