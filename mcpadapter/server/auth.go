// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
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
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// BearerToken is a token that a client of an HTTP server may send.
type BearerToken struct {
	Token string
	// Hash is the SHA-256 of the token, for a program that does not have Token, which is
	// then empty. The token must be hard to guess: 128 random bits or more.
	Hash [sha256.Size]byte
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
	Scopes []string // all that are needed
}

func (e *ScopeError) Error() string {
	return "the token needs the scopes " + strings.Join(e.Scopes, " ")
}

// Unwrap returns a failure with the code DENIED, for servers of other protocols.
func (e *ScopeError) Unwrap() error { return invoker.Failf(invoker.Denied, "The token lacks a scope.") }

// ResourceMetadata tells clients of an HTTP server where to get the tokens that it
// accepts (RFC 9728, § 2; MCP 2025-11-25, basic/authorization). It is served at the
// well-known path that belongs to Resource.
type ResourceMetadata struct {
	// Resource is the URL of this server, such as https://tools.example.com/mcp.
	Resource string
	// AuthorizationServers are the issuers' URLs. Without any there is nothing to serve: MCP
	// requires at least one in the document.
	AuthorizationServers []string
	// Scopes are the scopes that requests need; may be nil.
	Scopes []string
	// Name and Documentation, a URL, are for human readers; both may be empty.
	Name, Documentation string
}

// isServed reports whether the document is served. m may be nil.
func (m *ResourceMetadata) isServed() bool { return m != nil && len(m.AuthorizationServers) > 0 }

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
	credentials access.Credentials
	ask         func(context.Context, string, *http.Request) (string, []invoker.Value, error) // Options.Authenticate; may be nil
	trusted     []invoker.Value                                                               // of every caller
	metadata    *ResourceMetadata                                                             // may be nil
	hosts       []string                                                                      // Options.Hosts
	origins     []string                                                                      // Options.Origins
	choose      func(context.Context) *ensemble.Selection                                     // Options.Select; may be nil
	profile     func(context.Context, string) (*ensemble.Selection, bool)                     // Options.Profile; may be nil
	finds       func(ctx context.Context, profile string) bool                                // Options.Finds; may be nil
	invoke      func(context.Context, *ToolCall) (invoker.Output, error)                      // Options.Invoke
	parts       parts
	refusals    *zap.Logger
}

func newAuthentication(o *Options, refusals *zap.Logger) *authentication {
	tokens := access.NewTokens(o.Token, o.Tokens)
	return &authentication{
		credentials: access.Credentials{Tokens: tokens, Certificate: o.Certificate, TakesTokens: tokens.Configured() || o.Authenticate != nil},
		ask:         o.Authenticate, trusted: o.Trusted,
		metadata: o.ResourceMetadata, hosts: o.Hosts, origins: o.Origins, choose: o.Select, profile: o.Profile, finds: o.Finds,
		invoke: o.Invoke, refusals: refusals,
	}
}

// isRequired reports whether a request needs a bearer token or a certificate.
func (a *authentication) isRequired() bool { return a.credentials.Required() }

// identify authenticates a request and returns its caller. If not ok, it has written
// the response.
func (a *authentication) identify(w http.ResponseWriter, r *http.Request) (from *caller, ok bool) {
	said, by, identity, err := a.check(r)
	if err != nil {
		a.refuse(w, r, err)
		return nil, false
	}
	ctx := invoker.WithTrusted(r.Context(), append(slices.Clone(a.trusted), said...)...)
	return &caller{by: a, ctx: access.WithIdentity(by.WithName(ctx), identity), identity: identity, client: access.Client(identity, r.RemoteAddr), slot: alwaysFree}, true
}

func alwaysFree() (release func(), ok bool) { return func() {}, true }

// check checks the credentials of a request. It returns the trusted values of the request and
// its credentials, what these say, and the identity of the caller.
func (a *authentication) check(r *http.Request) (said []invoker.Value, by *access.Sender, identity string, err error) {
	said, by = invoker.TrustedFrom(r.Context()), &access.Sender{}
	if a.isRequired() {
		var ask access.AskFunc
		if a.ask != nil {
			ask = func(token string) (string, []invoker.Value, error) { return a.ask(r.Context(), token, r) }
		}
		if by, err = a.credentials.Check(r.Context(), r.TLS, r.Header.Values("Authorization"), ask); err != nil {
			return nil, nil, "", err
		}
		said = append(said, by.Values...)
	}
	return said, by, access.Identity(by.Key, said), nil
}

// refuse answers a request whose token is missing or not valid (RFC 6750, § 3; RFC
// 9728, § 5.1), or cannot be checked now.
func (a *authentication) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusUnauthorized, "the token is not valid"
	problem, scopes := "invalid_token", []string(nil)
	if a.metadata != nil {
		scopes = a.metadata.Scopes
	}
	scope, _ := errors.AsType[*ScopeError](err)
	away, _ := errors.AsType[*invoker.Failure](err)
	isCertificate := errors.Is(err, access.ErrCertificate)
	switch {
	case isCertificate:
		status, text = http.StatusForbidden, "the certificate is not that of a client"
	case scope != nil:
		status, text = http.StatusForbidden, "the token does not permit this"
		problem, scopes = "insufficient_scope", scope.Scopes
	case errors.Is(err, access.ErrNone):
		text, problem = "a bearer token is required", ""
	case away != nil && away.Code == invoker.Unavailable:
		status, text = http.StatusServiceUnavailable, "the token cannot be checked now"
		w.Header().Set("Retry-After", secondsText(away.RetryAfter))
	}
	logevent.Log(r.Context(), a.refusals, zapcore.InfoLevel, "a request is refused: its credentials are not valid", logevent.ServeRequestRefused, zap.Int("status", status), zap.String("from", hostnames.WithoutPort(r.RemoteAddr)), zap.Error(err))
	if status != http.StatusServiceUnavailable && !isCertificate { // a token would not help
		w.Header().Set("WWW-Authenticate", a.challenge(problem, scopes))
	}
	listening.Refuse(w, r, status, text)
}

// challenge tells a client where to get a token, and what it needs (MCP 2025-11-25,
// basic/authorization § Protected Resource Metadata Discovery Requirements).
func (a *authentication) challenge(problem string, scopes []string) string {
	var parameters []string
	if a.metadata.isServed() {
		parameters = append(parameters, fmt.Sprintf("resource_metadata=%q", a.metadata.url()))
	}
	if problem != "" {
		parameters = append(parameters, fmt.Sprintf("error=%q", problem))
	}
	if len(scopes) > 0 {
		parameters = append(parameters, fmt.Sprintf("scope=%q", strings.Join(scopes, " ")))
	}
	return strings.TrimSpace("Bearer " + strings.Join(parameters, ", "))
}
