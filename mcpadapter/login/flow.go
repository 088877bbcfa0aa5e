// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"golang.org/x/oauth2"
)

// Prompt says how a login reaches the person. Nil functions are not used.
type Prompt struct {
	// Visit shows the person the address of the authorization server. Required.
	Visit func(ctx context.Context, address string) error
	// Paste returns the address that the person's browser was sent to after the login, if
	// the browser runs on another machine. It is called once, while the redirect is
	// awaited, and must return when its ctx ends.
	Paste func(ctx context.Context) (string, error)
	// Enter shows the person the code to enter at an address, on any device. If it is set
	// and the authorization server offers that (RFC 8628) to the client, Visit and Paste are
	// not used.
	Enter func(ctx context.Context, code Code) error
}

// Code is what a person enters on another device.
type Code struct {
	Address  string    // where
	Code     string    // what
	Complete string    // the address with the code in it; may be empty
	Expiry   time.Time // how long the code is valid
}

var errNoPerson = errors.New("the server is used with the client's own credentials: no person can log in")

// Login lets a person log in, and stores the login. It replaces a former login of the same
// server and identity. ctx must end when the person gives up.
func (c *Client) Login(ctx context.Context, prompt *Prompt) (*Login, error) {
	if c.options.actsAlone() {
		return nil, errNoPerson
	}
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	scopes := d.wanted(ctx, c)
	var l *Login
	device, shown := prompt.Enter != nil && d.server.DeviceAuthorizationEndpoint != "", false
	if device {
		l, err = c.byDevice(ctx, d, scopes, func(ctx context.Context, code Code) error {
			shown = true
			return prompt.Enter(ctx, code)
		})
	}
	if _, refused := errors.AsType[*oauthError](err); !device || refused && !shown {
		l, err = c.byRedirect(ctx, d, scopes, prompt)
	}
	if err != nil {
		return nil, err
	}
	return l, c.replace(ctx, l)
}

// replace stores a new login and removes the former ones of other authorization servers.
func (c *Client) replace(ctx context.Context, l *Login) error {
	store := c.options.Store
	if err := store.Update(ctx, l.Key, func(*Login) (*Login, error) { return l, nil }); err != nil {
		return fmt.Errorf("storing the login: %w", err)
	}
	c.mu.Lock()
	c.unsaved, c.failed = nil, nil
	c.hold(l)
	c.mu.Unlock()
	all, err := store.List(ctx)
	if isDamaged(err) { // it is not this login, which was written
		err = nil
	}
	for _, other := range all {
		if other.Resource == l.Resource && other.Identity == l.Identity && other.Key != l.Key {
			err = errors.Join(err, store.Update(ctx, other.Key, func(*Login) (*Login, error) { return nil, nil }))
		}
	}
	return err
}

// byRedirect runs the authorization code flow with PKCE (RFC 6749, section 4.1; RFC 7636).
func (c *Client) byRedirect(ctx context.Context, d *discovery, scopes []string, prompt *Prompt) (*Login, error) {
	state, redirect := rand.Text(), c.options.RedirectURL
	if redirect == "" && c.options.clientID(d.server) != "" {
		redirect = "http://127.0.0.1/callback"
	}
	listener, err := listen(redirect, state)
	if err != nil {
		return nil, err
	}
	defer listener.close()
	r, err := c.redirect(ctx, d, scopes, listener.address, state)
	if err != nil {
		return nil, err
	}
	if err := prompt.Visit(ctx, r.URL); err != nil {
		return nil, err
	}
	answer, err := listener.wait(ctx, prompt.Paste)
	if err != nil {
		return nil, err
	}
	return r.redeem(ctx, answer)
}

// Redirect is a login that has begun, whose answer arrives at a page of the program: see
// [Client.Begin].
type Redirect struct {
	// URL is the address at which the person logs in.
	URL string
	// Issuer is the authorization server that the person logs in at.
	Issuer string
	// Scopes are requested; may be nil.
	Scopes []string

	client                    *Client
	server                    *authServer
	login                     *Login
	state, verifier, callback string
	used                      atomic.Bool
}

// Begin begins a login for a program that receives the redirect itself, at the address
// callback. The program must make sure that the person whose browser arrives there is the
// one on whose behalf the login was begun. Options.RedirectURL is not used. A client that is
// used for nothing else leaves no connections, and need not be closed.
func (c *Client) Begin(ctx context.Context, callback string) (*Redirect, error) {
	if c.options.actsAlone() {
		return nil, errNoPerson
	}
	defer c.wire.close() // the person may never come back
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	return c.redirect(ctx, d, d.wanted(ctx, c), callback, rand.Text())
}

func (c *Client) redirect(ctx context.Context, d *discovery, scopes []string, callback, state string) (*Redirect, error) {
	l, err := c.identify(ctx, d, scopes, grantCode, callback)
	if err != nil {
		return nil, err
	}
	verifier := oauth2.GenerateVerifier()
	address, err := authorizationURL(d, l, scopes, state, verifier, callback)
	if err != nil {
		return nil, err
	}
	return &Redirect{
		URL: address, Issuer: d.server.Issuer, Scopes: scopes,
		client: c, server: d.server, login: l, state: state, verifier: verifier, callback: callback,
	}, nil
}

// IsFor reports whether the parameters of a request to the callback belong to this login.
func (r *Redirect) IsFor(query url.Values) bool { return answer{query}.isFor(r.state) }

// Finish completes the login with the parameters of the request to the callback, and stores
// it. It works once.
func (r *Redirect) Finish(ctx context.Context, query url.Values) (*Login, error) {
	if !r.IsFor(query) || r.used.Swap(true) {
		return nil, errors.New("this redirect does not belong to the login, or was used before")
	}
	defer r.client.wire.close()
	l, err := r.redeem(ctx, answer{query})
	if err != nil {
		return nil, err
	}
	return l, r.client.replace(ctx, l)
}

// redeem exchanges the code of an answer for tokens.
func (r *Redirect) redeem(ctx context.Context, a answer) (*Login, error) {
	code, err := a.code(r.server)
	if err != nil {
		return nil, err
	}
	return r.client.finish(ctx, r.login, r.Scopes, url.Values{
		"grant_type":    {grantCode},
		"code":          {code},
		"redirect_uri":  {r.callback},
		"code_verifier": {r.verifier},
	})
}

// finish exchanges the result of a flow for tokens.
func (c *Client) finish(ctx context.Context, l *Login, scopes []string, form url.Values) (*Login, error) {
	r, err := c.tokenRequest(ctx, l, form)
	if err != nil {
		if refused, ok := errors.AsType[*oauthError](err); ok {
			return nil, fmt.Errorf("the authorization server %s refused the login: %w", l.Issuer, refused)
		}
		return nil, err
	}
	done := l.with(r)
	done.Since = r.At
	if done.Scopes == nil { // RFC 6749, section 5.1: as requested
		done.Scopes = scopes
	}
	return done, nil
}

// authorizationURL returns where the person logs in.
func authorizationURL(d *discovery, l *Login, scopes []string, state, verifier, redirect string) (string, error) {
	u, _ := url.Parse(d.server.AuthorizationEndpoint) // was checked
	query := u.Query()
	query.Set("response_type", "code")
	query.Set("client_id", l.ClientID)
	query.Set("redirect_uri", redirect)
	query.Set("state", state)
	query.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier))
	query.Set("code_challenge_method", "S256")
	query.Set("resource", l.Audience)
	if len(scopes) > 0 {
		query.Set("scope", strings.Join(scopes, " "))
	}
	if l.DPoPKey != "" { // RFC 9449, section 10: the code is of no use without the key
		key, err := dpop.ParseKey(string(l.DPoPKey))
		if err != nil {
			return "", err
		}
		query.Set("dpop_jkt", key.Thumbprint())
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// answer is what a redirect says.
type answer struct{ query url.Values }

// isFor reports whether the answer has the state of a login.
func (a answer) isFor(state string) bool {
	return subtle.ConstantTimeCompare([]byte(a.query.Get("state")), []byte(state)) == 1
}

// code returns the authorization code, unless the answer comes from another authorization
// server or is an error.
func (a answer) code(s *authServer) (string, error) {
	for name, values := range a.query { // RFC 6749, section 3.1
		if len(values) > 1 {
			return "", fmt.Errorf("the redirect has the parameter %s more than once", serverText(name))
		}
	}
	issuer := a.query.Get("iss")
	switch { // RFC 9207, section 2.4, before anything else
	case issuer == "" && s.AuthorizationResponseIssParameterSupported:
		return "", fmt.Errorf("the redirect does not say that it comes from %s: the login is refused, because another server may have sent it", s.Issuer)
	case issuer != "" && issuer != s.Issuer:
		return "", fmt.Errorf("the redirect comes from %q and not from %s: the login is refused", serverText(issuer), s.Issuer)
	}
	if name := a.query.Get("error"); name != "" {
		return "", fmt.Errorf("the authorization server refused the login: %w", &oauthError{serverText(name), serverText(a.query.Get("error_description"))})
	}
	if code := a.query.Get("code"); code != "" {
		return code, nil
	}
	return "", errors.New("the redirect has no authorization code")
}
