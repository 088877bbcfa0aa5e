// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// BearerToken is a token that a client of an HTTP server may send.
type BearerToken struct {
	Token string
	// Name tells this client from others in logs and limits; default a name
	// that is made of the token and does not show it.
	Name string
	// Trusted are attached to each call that comes with the token.
	Trusted []invoker.Value
	// Expires is when the token stops to be good; zero is never.
	Expires time.Time
}

// ScopeError says that a token is good, and not for this: the request is
// refused with status 403 and the scopes that would do (RFC 6750, § 3.1).
type ScopeError struct {
	Scopes []string
}

func (e *ScopeError) Error() string {
	return "the token lacks the scopes " + strings.Join(e.Scopes, " ")
}

// ResourceMetadata tells clients of an HTTP server where the tokens come from
// that it takes (RFC 9728, § 2; MCP 2025-11-25, basic/authorization). It is
// served at the well-known path that belongs to Resource.
type ResourceMetadata struct {
	// Resource is the URL of this server, such as https://tools.example.com/mcp.
	Resource string
	// AuthorizationServers are the issuers' URLs.
	AuthorizationServers []string
	// Scopes are those that requests need; may be nil.
	Scopes []string
	// Name and Documentation, a URL, are for people; both may be empty.
	Name, Documentation string
}

const wellKnown = "/.well-known/oauth-protected-resource"

// url returns where the document is: the well-known path goes in front of that
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
		return []byte("{}") // cannot happen: strings can be written
	}
	return text
}

// identify returns who sent a request; it has answered the request if not ok.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (from *caller, ok bool) {
	values, name, err := s.authenticate(r)
	if err != nil {
		s.refuseToken(w, r, err)
		return nil, false
	}
	said := append(invoker.TrustedFrom(r.Context()), values...)
	ctx := invoker.WithTrusted(r.Context(), append(slices.Clone(s.options.Trusted), said...)...)
	from = &caller{ctx: ctx, identity: identityOf(name, said), slot: alwaysFree}
	if from.client = "id " + from.identity; from.identity == "" {
		from.client = "ip " + addressOf(r.RemoteAddr)
	}
	return from, true
}

func alwaysFree() (release func(), ok bool) { return func() {}, true }

var (
	errNoToken    = errors.New("there is no bearer token")
	errWrongToken = errors.New("the bearer token is not one of this server's")
	errExpired    = errors.New("the bearer token has expired")
)

// authenticate checks the token of a request. The name is that of the token.
func (s *Server) authenticate(r *http.Request) (values []invoker.Value, name string, err error) {
	o := &s.options
	if o.Token == "" && len(o.Tokens) == 0 && o.Authenticate == nil {
		return nil, "", nil
	}
	header := r.Header.Values("Authorization")
	if len(header) == 0 {
		return nil, "", errNoToken
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	token = strings.TrimSpace(token)
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, "", errNoToken
	}
	if known := o.known(token); known != nil {
		if !known.Expires.IsZero() && !time.Now().Before(known.Expires) {
			return nil, "", errExpired
		}
		return known.Trusted, known.Name, nil
	}
	if o.Authenticate == nil {
		return nil, "", errWrongToken
	}
	if values, err = s.asked(r, token); len(values) == 0 {
		name = tokenName(sha256.Sum256([]byte(token))) // nothing else tells who it is
	}
	return values, name, err
}

// asked calls Authenticate, whose panic refuses the request.
func (s *Server) asked(r *http.Request, token string) (values []invoker.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("the check of the token panicked: %v", p)
		}
	}()
	return s.options.Authenticate(r.Context(), token, r)
}

// known returns the static token that was sent. All are compared, as hashes of
// one length, so that the time it takes tells nothing.
func (o *ServerOptions) known(token string) *BearerToken {
	sent := sha256.Sum256([]byte(token))
	var found *BearerToken
	check := func(t BearerToken) {
		hash := sha256.Sum256([]byte(t.Token))
		if subtle.ConstantTimeCompare(sent[:], hash[:]) == 1 && t.Token != "" {
			if t.Name == "" {
				t.Name = tokenName(hash)
			}
			found = &t
		}
	}
	check(BearerToken{Token: o.Token})
	for _, t := range o.Tokens {
		check(t)
	}
	return found
}

// tokenName is a name for a token that does not show it.
func tokenName(hash [sha256.Size]byte) string { return "token " + hex.EncodeToString(hash[:6]) }

// identityOf is a digest of the name of a token and of the values that make out
// who somebody is: those that are not secret, since a secret one, such as a
// token that is passed on, is another one tomorrow. It is empty if there is
// neither.
func identityOf(name string, values []invoker.Value) string {
	if name == "" && len(values) == 0 {
		return ""
	}
	open := slices.DeleteFunc(slices.Clone(values), invoker.Value.IsSecret)
	if name == "" && len(open) == 0 {
		open = values
	}
	digest := sha256.New()
	fmt.Fprintf(digest, "%q\n", name)
	for _, v := range invoker.TrustedFrom(invoker.WithTrusted(context.Background(), open...)) {
		text, err := v.Reveal()
		if err != nil {
			text = json.RawMessage(err.Error())
		}
		fmt.Fprintf(digest, "%q=%q\n", v.Name(), text)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// refuseToken answers a request whose token is missing or not good (RFC 6750, §
// 3; RFC 9728, § 5.1).
func (s *Server) refuseToken(w http.ResponseWriter, r *http.Request, err error) {
	challenge := []string{}
	if s.options.ResourceMetadata != nil {
		challenge = append(challenge, fmt.Sprintf("resource_metadata=%q", s.options.ResourceMetadata.url()))
	}
	status, text := http.StatusUnauthorized, "a bearer token is needed"
	var scope *ScopeError
	switch {
	case errors.As(err, &scope):
		status, text = http.StatusForbidden, "the token is not good for this"
		challenge = append(challenge, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", strings.Join(scope.Scopes, " ")))
	case errors.Is(err, errNoToken):
		if m := s.options.ResourceMetadata; m != nil && len(m.Scopes) > 0 {
			challenge = append(challenge, fmt.Sprintf("scope=%q", strings.Join(m.Scopes, " ")))
		}
	default:
		text = "the token is not good"
		challenge = append(challenge, `error="invalid_token"`)
	}
	s.refusals.Info("a request is refused", zap.Int("status", status), zap.String("from", hostOf(r.RemoteAddr)), zap.Error(err))
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(challenge, ", ")))
	http.Error(w, text, status)
}
