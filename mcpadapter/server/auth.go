// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// BearerToken is a token that a client of an HTTP server may send.
type BearerToken struct {
	Token string
	// Name identifies this client in logs, metrics, the audit and limits. Without a
	// name, limits use one that is derived from the token and does not reveal it.
	Name string
	// Trusted are attached to each call that comes with the token.
	Trusted []invoker.Value
	// Expires is when the token expires; zero means never.
	Expires time.Time
}

// ScopeError says that a token is valid but lacks scopes for this request. The request
// is refused with status 403 and the scopes that are needed (RFC 6750, § 3.1).
type ScopeError struct {
	Scopes []string
}

func (e *ScopeError) Error() string {
	return "the token lacks the scopes " + strings.Join(e.Scopes, " ")
}

// ResourceMetadata tells clients of an HTTP server where to get the tokens that it
// accepts (RFC 9728, § 2; MCP 2025-11-25, basic/authorization). It is served at the
// well-known path that belongs to Resource.
type ResourceMetadata struct {
	// Resource is the URL of this server, such as https://tools.example.com/mcp.
	Resource string
	// AuthorizationServers are the issuers' URLs.
	AuthorizationServers []string
	// Scopes are the scopes that requests need; may be nil.
	Scopes []string
	// Name and Documentation, a URL, are for human readers; both may be empty.
	Name, Documentation string
}

const wellKnown = "/.well-known/oauth-protected-resource"

// url returns the URL of the document: the well-known path is inserted before the path
// of the resource (RFC 9728, § 3.1).
func (m *ResourceMetadata) url() string {
	u, err := url.Parse(m.Resource)
	if err != nil {
		return ""
	}
	u.Path = wellKnown + strings.TrimSuffix(u.Path, "/")
	u.Fragment = ""
	return u.String()
}

func (m *ResourceMetadata) document() []byte {
	text, err := json.Marshal(struct {
		Resource  string   `json:"resource"`
		Servers   []string `json:"authorization_servers,omitempty"`
		Scopes    []string `json:"scopes_supported,omitempty"`
		Methods   []string `json:"bearer_methods_supported"`
		Name      string   `json:"resource_name,omitempty"`
		Documents string   `json:"resource_documentation,omitempty"`
	}{m.Resource, m.AuthorizationServers, m.Scopes, []string{"header"}, m.Name, m.Documentation})
	if err != nil {
		return []byte("{}") // cannot happen: strings always marshal
	}
	return text
}

// authentication decides who may send a request over HTTP, and finds out who does. It
// does not change; [Server.SetAccess] sets another.
type authentication struct {
	tokens   access.Tokens
	ask      func(ctx context.Context, token string, r *http.Request) ([]invoker.Value, error) // Options.Authenticate; may be nil
	trusted  []invoker.Value                                                                   // of every caller
	metadata *ResourceMetadata                                                                 // may be nil
	hosts    []string                                                                          // Options.Hosts
	origins  []string                                                                          // Options.Origins
	choose   func(context.Context) *ensemble.Selection                                         // Options.Select; may be nil
	profile  func(context.Context, string) (*ensemble.Selection, bool)                         // Options.Profile; may be nil
	finds    func(ctx context.Context, profile string) bool                                    // Options.Finds; may be nil
	parts    parts
	refusals *zap.Logger
}

func newAuthentication(o *Options, refusals *zap.Logger) *authentication {
	return &authentication{
		tokens: access.NewTokens(o.Token, o.Tokens), ask: o.Authenticate, trusted: o.Trusted,
		metadata: o.ResourceMetadata, hosts: o.Hosts, origins: o.Origins, choose: o.Select, profile: o.Profile, finds: o.Finds, refusals: refusals,
	}
}

// isRequired reports whether a request needs a bearer token.
func (a *authentication) isRequired() bool { return a.tokens.Configured() || a.ask != nil }

// identify authenticates a request and returns its caller. If not ok, it has written
// the response.
func (a *authentication) identify(w http.ResponseWriter, r *http.Request) (from *caller, ok bool) {
	said, name, identity, err := a.check(r)
	if err != nil {
		a.refuse(w, r, err)
		return nil, false
	}
	ctx := invoker.WithTrusted(r.Context(), append(slices.Clone(a.trusted), said...)...)
	ctx = a.tokens.WithName(ctx, name)
	return &caller{by: a, ctx: ctx, identity: identity, client: access.Client(identity, r.RemoteAddr), slot: alwaysFree}, true
}

func alwaysFree() (release func(), ok bool) { return func() {}, true }

// check checks the token of a request. It returns the trusted values of the request and
// its token, the name of the token, and the identity of the caller.
func (a *authentication) check(r *http.Request) (said []invoker.Value, name, identity string, err error) {
	said = invoker.TrustedFrom(r.Context())
	if a.isRequired() {
		var ask func(token string) ([]invoker.Value, error)
		if a.ask != nil {
			ask = func(token string) ([]invoker.Value, error) { return a.ask(r.Context(), token, r) }
		}
		var values []invoker.Value
		if values, name, err = a.tokens.Check(r.Header.Values("Authorization"), ask); err != nil {
			return nil, "", "", err
		}
		said = append(said, values...)
	}
	return said, name, access.Identity(name, said), nil
}

// refuse answers a request whose token is missing or not valid (RFC 6750, § 3; RFC
// 9728, § 5.1).
func (a *authentication) refuse(w http.ResponseWriter, r *http.Request, err error) {
	challenge := []string{}
	if a.metadata != nil {
		challenge = append(challenge, fmt.Sprintf("resource_metadata=%q", a.metadata.url()))
	}
	status, text := http.StatusUnauthorized, "a bearer token is required"
	var scope *ScopeError
	switch {
	case errors.As(err, &scope):
		status, text = http.StatusForbidden, "the token does not permit this"
		challenge = append(challenge, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", strings.Join(scope.Scopes, " ")))
	case errors.Is(err, access.ErrNone):
		if m := a.metadata; m != nil && len(m.Scopes) > 0 {
			challenge = append(challenge, fmt.Sprintf("scope=%q", strings.Join(m.Scopes, " ")))
		}
	default:
		text = "the token is not valid"
		challenge = append(challenge, `error="invalid_token"`)
	}
	logevent.Log(r.Context(), a.refusals, zapcore.InfoLevel, "a request is refused: its token is not valid", logevent.ServeRequestRefused, zap.Int("status", status), zap.String("from", hostOf(r.RemoteAddr)), zap.Error(err))
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(challenge, ", ")))
	listening.Refuse(w, r, status, text)
}
