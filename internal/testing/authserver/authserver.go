// SPDX-License-Identifier: Apache-2.0

// Package authserver is an OAuth authorization server for tests, and the guard of a
// server that trusts it. A test decides how it misbehaves.
package authserver

import (
	"cmp"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Behaviour is how a server differs from a correct one, which registers clients and holds
// them to their scopes, has metadata, checks PKCE, rotates refresh tokens and revokes all
// tokens of a login when a refresh token is used twice.
type Behaviour struct {
	NoMetadata     bool     // all its metadata is missing
	OpenIDOnly     bool     // its metadata is only at the place of OpenID Connect
	NoRegistration bool     // clients cannot register themselves
	Documents      bool     // it takes client ID metadata documents
	MetadataIssuer string   // the issuer in the metadata, if it is another one
	Challenges     []string // code_challenge_methods_supported; default S256; empty and not nil: missing
	NoIss          bool     // redirects have no issuer, though the metadata says so
	NoIssSupport   bool     // neither redirects nor metadata have an issuer
	Iss            string   // the issuer in redirects, if it is another one
	NoRotation     bool     // refresh tokens stay the same
	NoRefresh      bool     // there are no refresh tokens
	ExpiresIn      string   // JSON; default 3600; "-" leaves it out
	TokenType      string   // default Bearer
	Scopes         []string // scopes_supported
	Demanded       string   // the scope in the challenge of the guard
	Granted        string   // the scope of token responses; empty leaves it out
	Device         bool     // there is a device flow
	NoRevocation   bool
	DPoP           []string // dpop_signing_alg_values_supported; with it, tokens are bound to the key of a proof
	DPoPResource   string   // what the guard says about DPoP: "challenge", "metadata", "required" or nothing
	DPoPNonces     bool     // proofs need a nonce, which changes
	TokenRedirect  string   // the token endpoint redirects here
}

// Server is an authorization server. The zero value of all fields but Issuer works.
type Server struct {
	Issuer string

	mu        sync.Mutex
	behaviour Behaviour
	fails     func(*http.Request) int // a status, or 0
	clients   map[string]client       // by ID
	codes     map[string]code
	refresh   map[string]*grant // by refresh token, used or not
	access    map[string]*grant
	devices   map[string]bool // device code -> entered
	requests  map[string]int  // by path and grant type
	forms     []url.Values    // of the token endpoint
	serial    int
	subjects  map[string]string // by token
	grants    map[string][3]string
	provider  *Server
	key       *Key                        // signs access tokens; nil for tokens without a meaning
	user      string                      // the subject of signed tokens
	keys      map[string]crypto.PublicKey // by client
	proofs    proofs
}

// client is a client that is registered.
type client struct {
	redirect string
	scopes   []string // that it may request; nil without a limit
}

// may reports whether the client may request a scope (RFC 7591, section 2).
func (c client) may(scope string) bool {
	return c.scopes == nil || !slices.ContainsFunc(strings.Fields(scope), func(one string) bool { return !slices.Contains(c.scopes, one) })
}

type code struct{ challenge, redirect, client, resource, thumbprint string }

// grant is a login, in the eyes of the server.
type grant struct {
	id               int // of the login; 0 before its first token
	client, resource string
	current          string // its refresh token
	revoked          bool
	subject          string               // for whom a token was exchanged
	expiry           map[string]time.Time // of its access tokens
	thumbprint       string               // of the key that its tokens are bound to; empty for bearer tokens
}

// New returns a server.
func New(issuer string, b Behaviour) *Server {
	return &Server{
		Issuer: issuer, behaviour: b, clients: map[string]client{}, codes: map[string]code{}, devices: map[string]bool{},
		subjects: map[string]string{}, grants: map[string][3]string{}, keys: map[string]crypto.PublicKey{},
		refresh: map[string]*grant{}, access: map[string]*grant{}, requests: map[string]int{},
	}
}

// Behave changes the behaviour.
func (s *Server) Behave(change func(*Behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.behaviour)
}

// Fail makes requests fail with the status that status returns, unless it is 0; nil makes
// the server work again.
func (s *Server) Fail(status func(*http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = status
}

// Count returns how many requests the server got, such as "/register" or
// "/token refresh_token".
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[what]
}

// Forms returns the requests to the token endpoint.
func (s *Server) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

// RevokeAll ends all logins.
func (s *Server) RevokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range slices.AppendSeq(slices.Collect(maps.Values(s.refresh)), maps.Values(s.access)) {
		g.revoked = true
	}
}

// SignWith makes access tokens JWTs (RFC 9068) of a user.
func (s *Server) SignWith(key *Key, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.user = key, user
}

// AddClient registers a client; a client with a secret must send it.
func (s *Server) AddClient(id, redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = client{redirect: redirect}
}

// Enter lets the person enter all codes of the device flow.
func (s *Server) Enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device := range s.devices {
		s.devices[device] = true
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[strings.TrimSpace(r.URL.Path+" "+r.PostForm.Get("grant_type"))]++
	if s.fails != nil {
		if status := s.fails(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration":
		if s.behaviour.NoMetadata || s.behaviour.OpenIDOnly && r.URL.Path != "/.well-known/openid-configuration" {
			http.NotFound(w, r)
			return
		}
		reply(w, http.StatusOK, s.metadata())
	case "/keys":
		reply(w, http.StatusOK, map[string]any{"keys": []any{s.key.JWK()}})
	case "/register":
		s.register(w, r)
	case "/authorize":
		s.authorize(w, r)
	case "/device":
		if !s.clients[r.PostForm.Get("client_id")].may(r.PostForm.Get("scope")) {
			refuse(w, "invalid_scope")
			return
		}
		s.serial++
		device := fmt.Sprint("device-", s.serial)
		s.devices[device] = false
		reply(w, http.StatusOK, map[string]any{"device_code": device, "user_code": "ABCD-EFGH", "verification_uri": s.Issuer + "/enter", "expires_in": 600, "interval": 1})
	case "/token":
		s.forms = append(s.forms, r.PostForm)
		if s.behaviour.TokenRedirect != "" {
			http.Redirect(w, r, s.behaviour.TokenRedirect, http.StatusTemporaryRedirect)
			return
		}
		if thumbprint, ok := s.proven(w, r); ok {
			s.token(w, r, thumbprint)
		}
	case "/revoke":
		if g := s.refresh[r.PostForm.Get("token")]; g != nil {
			g.revoked = true
		}
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) metadata() map[string]any {
	b := s.behaviour
	m := map[string]any{
		"issuer":                                         cmp.Or(b.MetadataIssuer, s.Issuer),
		"authorization_endpoint":                         s.Issuer + "/authorize",
		"token_endpoint":                                 s.Issuer + "/token",
		"code_challenge_methods_supported":               []string{"S256"},
		"response_types_supported":                       []string{"code"},
		"scopes_supported":                               b.Scopes,
		"client_id_metadata_document_supported":          b.Documents,
		"authorization_response_iss_parameter_supported": !b.NoIssSupport,
	}
	if b.DPoP != nil {
		m["dpop_signing_alg_values_supported"] = b.DPoP
	}
	if b.Challenges != nil {
		m["code_challenge_methods_supported"] = b.Challenges
	}
	if s.key != nil {
		m["jwks_uri"] = s.Issuer + "/keys"
	}
	for name, path := range map[string]string{"registration_endpoint": "/register", "device_authorization_endpoint": "/device", "revocation_endpoint": "/revoke"} {
		if path == "/register" && !b.NoRegistration || path == "/device" && b.Device || path == "/revoke" && !b.NoRevocation {
			m[name] = s.Issuer + path
		}
	}
	return m
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Scope     string
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Redirects == nil || s.behaviour.NoRegistration {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	s.serial++
	id := fmt.Sprint("client-", s.serial)
	s.clients[id] = client{strings.Join(asked.Redirects, " "), append([]string{}, strings.Fields(asked.Scope)...)}
	reply(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": "none"})
}

// authorize answers as if the person had agreed.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	id, redirect := query.Get("client_id"), query.Get("redirect_uri")
	known, ok := s.clients[id]
	if strings.HasPrefix(id, "https://") && s.behaviour.Documents {
		known, ok = client{redirect: redirect}, true
	}
	if !ok || known.redirect != redirect || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" || query.Get("resource") == "" {
		http.Error(w, "the request is wrong", http.StatusBadRequest)
		return
	}
	s.serial++
	key := fmt.Sprint("code-", s.serial)
	s.codes[key] = code{query.Get("code_challenge"), redirect, id, query.Get("resource"), query.Get("dpop_jkt")}
	answer := url.Values{"code": {key}, "state": {query.Get("state")}}
	if !known.may(query.Get("scope")) { // RFC 6749, section 4.1.2.1
		answer = url.Values{"error": {"invalid_scope"}, "state": {query.Get("state")}}
	}
	if b := s.behaviour; !b.NoIss && !b.NoIssSupport || b.Iss != "" {
		answer.Set("iss", cmp.Or(b.Iss, s.Issuer))
	}
	http.Redirect(w, r, redirect+"?"+answer.Encode(), http.StatusFound)
}

// token answers a request of the token endpoint; thumbprint is that of the key of its proof.
func (s *Server) token(w http.ResponseWriter, r *http.Request, thumbprint string) {
	form := r.PostForm
	switch form.Get("grant_type") {
	case "authorization_code":
		c, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge || c.redirect != form.Get("redirect_uri") || c.resource != form.Get("resource") || c.client != form.Get("client_id") ||
			s.behaviour.DPoP != nil && c.thumbprint != "" && c.thumbprint != thumbprint {
			refuse(w, "invalid_grant")
			return
		}
		s.issue(w, &grant{client: c.client, resource: c.resource, expiry: map[string]time.Time{}, thumbprint: thumbprint})
	case "refresh_token":
		g := s.refresh[form.Get("refresh_token")]
		if g == nil || g.revoked || g.client != form.Get("client_id") || g.resource != form.Get("resource") || g.thumbprint != thumbprint {
			refuse(w, "invalid_grant")
			return
		}
		if g.current != form.Get("refresh_token") {
			g.revoked = true // it was stolen (RFC 9700, section 4.14.2)
			refuse(w, "invalid_grant")
			return
		}
		s.issue(w, g)
	case "client_credentials":
		if id, secret, ok := r.BasicAuth(); (!ok || id != "machine" || secret != "machine-secret") && !s.signed(form) {
			refuse(w, "invalid_client")
			return
		}
		s.issue(w, &grant{client: "machine", resource: form.Get("resource"), expiry: map[string]time.Time{}, thumbprint: thumbprint})
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		s.exchange(w, form)
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		subject := s.subjects[form.Get("assertion")]
		if s.provider != nil {
			subject = s.provider.granted(form.Get("assertion"), s.Issuer, form.Get("resource"))
		}
		if subject == "" {
			refuse(w, "invalid_grant")
			return
		}
		s.issue(w, &grant{client: "machine", resource: form.Get("resource"), subject: subject, expiry: map[string]time.Time{}})
	case "urn:ietf:params:oauth:grant-type:device_code":
		entered, ok := s.devices[form.Get("device_code")]
		switch {
		case !ok:
			refuse(w, "expired_token")
		case !entered:
			refuse(w, "authorization_pending")
		default:
			s.issue(w, &grant{client: form.Get("client_id"), resource: form.Get("resource"), expiry: map[string]time.Time{}, thumbprint: thumbprint})
		}
	default:
		refuse(w, "unsupported_grant_type")
	}
}

func (s *Server) issue(w http.ResponseWriter, g *grant) {
	b := s.behaviour
	s.serial++
	if g.id == 0 {
		g.id = s.serial
	}
	access := fmt.Sprint("access-token-", s.serial)
	if s.key != nil {
		now := time.Now().Unix()
		access = s.key.Sign(map[string]any{"iss": s.Issuer, "aud": g.resource, "sub": s.user, "iat": now, "exp": now + 3600, "jti": access}, nil)
	}
	answer := map[string]any{"access_token": access, "token_type": cmp.Or(b.TokenType, "Bearer")}
	if g.thumbprint != "" && b.TokenType == "" {
		answer["token_type"] = "DPoP"
	}
	lasts := json.RawMessage(cmp.Or(b.ExpiresIn, "3600"))
	if string(lasts) != "-" {
		answer["expires_in"] = lasts
	}
	if b.Granted != "" {
		answer["scope"] = b.Granted
	}
	if !b.NoRefresh && (g.current == "" || !b.NoRotation) && g.client != "machine" {
		g.current = fmt.Sprint("refresh-token-", s.serial)
		s.refresh[g.current] = g
		answer["refresh_token"] = g.current
	}
	g.expiry[access] = time.Now().Add(time.Hour)
	s.access[access] = g
	reply(w, http.StatusOK, answer)
}

// Accepts reports whether a token is valid for a resource.
func (s *Server) Accepts(token, resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.access[token]
	return g != nil && !g.revoked && g.resource == resource && time.Now().Before(g.expiry[token])
}

// LoginOf returns the number of the login of a token; 0 for an unknown token.
func (s *Server) LoginOf(token string) int { return s.grantOf(token).id }

// grantOf returns the grant of an access token; zero for an unknown one.
func (s *Server) grantOf(token string) grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.access[token]; g != nil {
		return *g
	}
	return grant{}
}

// Guard returns a handler that serves the metadata of a resource (RFC 9728) and lets only
// requests with its tokens through to inner.
func (s *Server) Guard(resource string, inner http.Handler) http.Handler {
	u, _ := url.Parse(resource)
	place := "/.well-known/oauth-protected-resource" + u.Path
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case r.URL.Path == place:
			reply(w, http.StatusOK, s.resourceMetadata(resource))
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			http.NotFound(w, r)
		case isDPoP(r):
			if s.provenFor(w, r, resource) {
				inner.ServeHTTP(w, r)
			}
		case !s.Accepts(token, resource) || s.isBound(token):
			s.challenge(w, u.Scheme+"://"+u.Host+place)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, code string) {
	reply(w, http.StatusBadRequest, map[string]any{"error": code})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
