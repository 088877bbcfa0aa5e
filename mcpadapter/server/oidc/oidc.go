// SPDX-License-Identifier: Apache-2.0

// Package oidc identifies the clients of a server by the access tokens (JWT, RFC 9068) of an
// OpenID Connect provider or another OAuth authorization server. Its [Verifier.Verify] fits
// server.Options.Authenticate:
//
//	verifier, err := oidc.New(&oidc.Options{Issuer: "https://login.example.com", Audience: "https://tools.example.com/mcp"})
//	…
//	options.Authenticate = func(ctx context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
//		return verifier.Verify(ctx, token)
//	}
//
// Programs that do not import the package do not link what it needs.
package oidc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"go.uber.org/zap"
)

// Options describe the tokens that a server accepts.
type Options struct {
	// Issuer is the claim iss of the tokens, and the URL below which the issuer publishes
	// its metadata and keys. It must begin with https://, except on this machine. Required.
	Issuer string
	// Audience is what the claim aud must contain: the URL of the server as its clients use
	// it, or the name that the issuer has for it. It keeps out tokens for other servers of
	// the issuer. Required.
	Audience string
	// Scopes must all be in the claim scope or scp of a token; may be nil.
	Scopes []string
	// Name is the claim with the name of the client for logs, the audit and rules; default
	// "sub". A token without it is refused. The users must not be able to choose it.
	Name string
	// Trusted are the claims that become trusted values, by the name of the value. The
	// claims iss and sub always do, with their own names, so that two users never have the
	// same identity. A claim that a token lacks sets no value. A claim is given by
	// its name, or by a JSON pointer (RFC 6901) that begins with a slash: /realm_access/roles.
	Trusted map[string]string
	// HTTP replaces the HTTP client for requests to the issuer. Only its Transport is used.
	HTTP *http.Client
	// Logger receives events about the issuer's keys; nil discards them.
	Logger *zap.Logger
}

// Limits of a token.
const (
	maxToken = 16 << 10 // bytes
	maxName  = 256      // bytes
	skew     = time.Minute
)

// algorithms are the accepted signatures. All are asymmetric: with another kind, the public
// key of an issuer could be used to sign (RFC 8725, section 2.1).
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// The values of each token.
var (
	issuerValue  = invoker.NewTrusted[string]("iss")
	subjectValue = invoker.NewTrusted[string]("sub")
)

// Verifier checks tokens. Its methods may be called concurrently.
type Verifier struct {
	options Options
	keys    *keySet
	config  oidc.Config
}

// New returns a verifier. It sends no request: the keys of the issuer are fetched when the
// first token arrives.
func New(options *Options) (*Verifier, error) {
	o := *options
	o.Scopes, o.Trusted = slices.Clone(o.Scopes), maps.Clone(o.Trusted)
	o.Name = cmp.Or(o.Name, "sub")
	if err := checkURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("the issuer %w", err)
	}
	if o.Audience == "" {
		return nil, errors.New("the audience is missing: without it, tokens for other servers would be accepted")
	}
	for name := range o.Trusted {
		if name == "" || name == "iss" || name == "sub" {
			return nil, fmt.Errorf("the trusted value %q is set by the verifier itself: choose another name", name)
		}
	}
	transport := http.RoundTripper(nil)
	if o.HTTP != nil {
		transport = o.HTTP.Transport
	}
	v := &Verifier{options: o, keys: newKeySet(o.Issuer, transport, logevent.Logger(o.Logger))}
	v.config = oidc.Config{ClientID: o.Audience, Now: func() time.Time { return time.Now().Add(-skew) }}
	for _, algorithm := range algorithms {
		v.config.SupportedSigningAlgs = append(v.config.SupportedSigningAlgs, string(algorithm))
	}
	return v, nil
}

// signed is the payload of a token whose signature was checked. It implements
// [oidc.KeySet], which would not hand on the errors of a check.
type signed []byte

// VerifySignature implements [oidc.KeySet].
func (s signed) VerifySignature(context.Context, string) ([]byte, error) { return s, nil }

// checkURL returns an error if requests must not be sent to an address.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is not a URL such as https://login.example.com")
	case u.Scheme == "https", u.Scheme == "http" && hostnames.IsThisMachine(u.Hostname()):
		return nil
	}
	return errors.New("should begin with https://")
}

// Verify checks a token, and returns the name of its client and its trusted values. If the
// token lacks a scope, the error has a [server.ScopeError] in its chain. If it cannot be
// checked now, because the issuer does not answer, the error is an [*invoker.Failure] with
// the code UNAVAILABLE.
func (v *Verifier) Verify(ctx context.Context, token string) (name string, values []invoker.Value, err error) {
	if err := checkForm(token); err != nil {
		return "", nil, err
	}
	payload, err := v.keys.verify(ctx, token)
	if err != nil {
		return "", nil, err
	}
	if _, err := oidc.NewVerifier(v.options.Issuer, signed(payload), &v.config).Verify(ctx, token); err != nil {
		return "", nil, describe(err)
	}
	claims := map[string]json.RawMessage{}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", nil, errors.New("the claims of the token are not a JSON object")
	}
	if err := checkClaims(claims); err != nil {
		return "", nil, err
	}
	if missing := slices.DeleteFunc(slices.Clone(v.options.Scopes), func(s string) bool { return slices.Contains(scopesOf(claims), s) }); len(missing) > 0 {
		return "", nil, &server.ScopeError{Scopes: v.options.Scopes}
	}
	if name, err = textIn(claims, v.options.Name); err != nil {
		return "", nil, err
	}
	subject, err := textIn(claims, "sub")
	if err != nil {
		return "", nil, err
	}
	values = []invoker.Value{issuerValue.Value(v.options.Issuer), subjectValue.Value(subject)}
	for _, to := range slices.Sorted(maps.Keys(v.options.Trusted)) {
		if claim := find(claims, v.options.Trusted[to]); claim != nil {
			values = append(values, invoker.TrustedJSON(to, claim))
		}
	}
	return name, values, nil
}

// checkForm refuses tokens that are not a signed JWT in the compact form.
func checkForm(token string) error {
	switch {
	case len(token) > maxToken:
		return fmt.Errorf("the token has more than %d bytes", maxToken)
	case strings.Count(token, ".") != 2 || strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		return errors.New("the token is not a signed JWT in the compact form (RFC 7515)")
	}
	return nil
}

// describe returns the error of a check of claims.
func describe(err error) error {
	if _, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return errors.New("the token has expired")
	}
	return fmt.Errorf("the token is not valid: %s", brief(err))
}

// checkClaims checks the claims that package oidc leaves out.
func checkClaims(claims map[string]json.RawMessage) error {
	for name := range claims { // package oidc takes them in any case of letters, as encoding/json does
		for _, exact := range []string{"iss", "sub", "aud", "exp", "nbf", "iat", "cnf"} {
			if name != exact && strings.EqualFold(name, exact) {
				return fmt.Errorf("the token has a claim %s, which could be taken for %s", name, exact)
			}
		}
	}
	for _, name := range []string{"nbf", "iat"} {
		raw, ok := claims[name]
		if !ok {
			continue
		}
		var seconds float64
		if err := json.Unmarshal(raw, &seconds); err != nil {
			return fmt.Errorf("the claim %s of the token is not a number", name)
		}
		if seconds > float64(time.Now().Add(skew).Unix()) {
			return fmt.Errorf("the token is not valid yet: its claim %s is in the future", name)
		}
	}
	if raw, ok := claims["cnf"]; ok && string(raw) != "null" {
		return errors.New("the token is bound to a key (claim cnf), whose proof is not supported: it must not be used as a bearer token (RFC 9449, RFC 8705)")
	}
	return nil
}

// scopesOf returns the scopes of a token: scope is a text (RFC 9068, section 2.2.3), scp a
// text or a list.
func scopesOf(claims map[string]json.RawMessage) (scopes []string) {
	for _, name := range []string{"scope", "scp"} {
		var text string
		var list []string
		if json.Unmarshal(claims[name], &text) == nil {
			scopes = append(scopes, strings.Fields(text)...)
		} else if json.Unmarshal(claims[name], &list) == nil {
			scopes = append(scopes, list...)
		}
	}
	return scopes
}

// textIn returns a claim that identifies the client.
func textIn(claims map[string]json.RawMessage, claim string) (string, error) {
	var name string
	if err := json.Unmarshal(find(claims, claim), &name); err != nil || name == "" {
		return "", fmt.Errorf("the token has no text in its claim %s, which identifies its client", claim)
	}
	if len(name) > maxName || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", fmt.Errorf("the claim %s of the token is longer than %d bytes, or has control characters", claim, maxName)
	}
	return name, nil
}

// find returns a claim, by its name or a JSON pointer; nil if it is missing or null.
func find(claims map[string]json.RawMessage, claim string) json.RawMessage {
	if !strings.HasPrefix(claim, "/") {
		return notNull(claims[claim])
	}
	var found json.RawMessage
	for step := range strings.SplitSeq(claim[1:], "/") {
		found = claims[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		claims = nil
		_ = json.Unmarshal(found, &claims) // only objects have members
	}
	return notNull(found)
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
