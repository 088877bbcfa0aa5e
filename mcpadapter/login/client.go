// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/mcpadapter/internal/challenge"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/consort-go/consort/mcpadapter/internal/jwtsign"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
)

// Options describe the login at one MCP server.
type Options struct {
	// URL is the address of the MCP server. Required.
	URL string
	// Headers are sent with the request that asks the server for its authorization
	// server, and with no other.
	Headers map[string]string
	// Identity is the user of the tokens; empty if there is only one.
	Identity string
	// Store keeps the login; default [NewMemory].
	Store Store

	// Issuer is the only authorization server that is allowed, and the one of a server that
	// names none. If empty, the server chooses it. Required with ClientSecret, which would
	// otherwise be sent to any.
	Issuer string
	// ClientID and ClientSecret are those of a client that was registered beforehand; the
	// secret is empty for a public client.
	ClientID     string
	ClientSecret Secret
	// ClientMetadata is the URL of the client's metadata document, which identifies the
	// client to authorization servers that support it (MCP 2025-11-25,
	// basic/authorization § Client ID Metadata Documents). ClientID overrides it. Without
	// either, the client registers itself at each login (RFC 7591).
	ClientMetadata string
	// ClientName is shown to the person by the authorization server, if the client
	// registers itself; default "Consort".
	ClientName string
	// RedirectURL is where the authorization server sends the person after the login. It
	// must be an http URL of this machine, such as http://127.0.0.1/callback; without a
	// port, a free one is used. Default: http://127.0.0.1/callback, or a free port and a random
	// path of 127.0.0.1 if the client registers itself.
	RedirectURL string
	// Scopes are requested. If empty, those are that the server asks for, and with them
	// offline_access, if the authorization server announces it.
	Scopes []string
	// Machine makes the client log in by itself, with ClientID and ClientSecret (client
	// credentials, RFC 6749, section 4.4). These tokens are not stored.
	Machine bool
	// ClientKey is the private key with which the client authenticates instead of a secret
	// (private_key_jwt, RFC 7523, section 2.2): RSA, ECDSA with P-256 or Ed25519, in PEM.
	ClientKey Secret

	// Subject returns the token of the user for whom the client acts. If it is set, no person
	// logs in: the token is exchanged for one of the server (RFC 8693) by Issuer, which is
	// required then. These tokens are not stored. The context of Subject is not that of a
	// call. It may be called concurrently.
	Subject func(ctx context.Context) (Subject, error)
	// Audience is the name of the server to the issuer that exchanges tokens, in addition to
	// its URL; may be empty.
	Audience string
	// Provider, if it is set, exchanges the subject's token for a grant, with which the
	// server's own authorization server issues a token (SEP-990).
	Provider *Provider
	// Assertion presents the subject's token, a JWT, to the server's authorization server as
	// it is (RFC 7523, section 2.1), as workloads do. ClientID may be empty then.
	Assertion bool

	// Hint tells a person what to do when a login is needed, such as "type: consort login
	// files".
	Hint string
	// HTTP replaces the HTTP client for requests to the authorization server. Only its
	// Transport is used.
	HTTP *http.Client
	// Logger receives events about the login; nil discards them.
	Logger *zap.Logger
}

// Client gets the tokens for one MCP server. It implements [auth.OAuthHandler]. Its
// methods may be called concurrently.
type Client struct {
	options  Options
	key      Key // without an issuer, unless only one is allowed
	server   *url.URL
	endpoint string // options.URL without a fragment
	wire     *wire
	log      *zap.Logger
	secrets  *redact.Growing
	signer   crypto.Signer // nil without a client key

	mu       sync.Mutex
	held     *Login     // the newest login that this process knows; nil before the first
	compared time.Time  // when held was last compared with the store
	unsaved  *Login     // newer than the stored one, because storing failed
	renewing *renewal   // nil while none runs
	failed   error      // of the last renewal, if the authorization server was away
	retry    time.Time  // when the next renewal may be tried after it
	found    *discovery // without a person
	closed   bool
}

var _ auth.OAuthHandler = (*Client)(nil)

const (
	renewTimeout = 75 * time.Second // includes the wait for another process
	retryPause   = 5 * time.Second  // after the authorization server was away
	freshFor     = 10 * time.Second // a token that is rejected so soon is not renewed again
	compareAfter = 30 * time.Second // another process may have logged in or out meanwhile
	comparing    = 2 * time.Second  // how long the store may take, if there is a usable token
	maxWanted    = 4 << 10          // bytes of the scopes that a login remembers for the next one
)

// Resource returns the address of the server as [Key] has it.
func (o *Options) Resource() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return o.URL
	}
	u.Fragment, u.RawFragment, u.RawQuery, u.User = "", "", "", nil
	return u.String()
}

// New returns the client of a server. It connects to nothing.
func New(options *Options) (*Client, error) {
	o := *options
	o.Headers, o.Scopes = maps.Clone(o.Headers), slices.Clone(o.Scopes)
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the URL of the server should begin with http:// or https:// and a host")
	}
	if o.Machine && (o.ClientID == "" || o.ClientSecret == "" && o.ClientKey == "") {
		return nil, errors.New("a login without a person needs a client ID and a client secret or key")
	}
	if err := o.checkSubject(); err != nil {
		return nil, err
	}
	var signer crypto.Signer
	if o.ClientKey != "" {
		if signer, err = jwtsign.ParseKey(string(o.ClientKey)); err != nil {
			return nil, err
		}
	}
	if o.ClientSecret != "" && o.Issuer == "" {
		return nil, errors.New("a client secret belongs to one authorization server: set its issuer")
	}
	if err := checkRedirectURL(o.RedirectURL); err != nil {
		return nil, err
	}
	if o.Store == nil {
		o.Store = NewMemory()
	}
	o.ClientName = cmp.Or(o.ClientName, "Consort")
	u.Fragment, u.RawFragment = "", ""
	c := &Client{options: o, endpoint: u.String(), log: logevent.Logger(o.Logger), secrets: redact.NewGrowing(), signer: signer}
	u.RawQuery, u.User = "", nil
	c.server = u
	c.key = Key{Issuer: o.Issuer, Resource: o.Resource(), Identity: o.Identity}
	c.wire = newWire(u, o.HTTP, o.Issuer != "" || o.Provider != nil)
	return c, nil
}

// Close waits for a renewal that is under way, so that its result is stored, and closes
// idle connections. It waits at most 75 seconds.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	renewing := c.renewing
	c.mu.Unlock()
	if renewing != nil {
		<-renewing.done
	}
	c.wire.close()
	return nil
}

// Redact removes the tokens of this process from a text.
func (c *Client) Redact(text string) string { return c.secrets.Text(text) }

// Token returns an access token that is valid as far as is known, and renews it before if
// necessary. Its error has [ensemble.ErrNeedsLogin] in its chain if a person must log in.
// With Machine, it returns "" until the server has asked for a token. If the token is bound to
// a key (RFC 9449), only a connection of package mcpadapter can use it.
func (c *Client) Token(ctx context.Context) (string, error) {
	if c.options.Machine {
		c.mu.Lock()
		idle := c.held == nil
		c.mu.Unlock()
		if idle {
			return "", nil
		}
	}
	l, err := c.current(ctx, "")
	if err != nil {
		return "", err
	}
	return string(l.AccessToken), c.wire.bind(ctx, l)
}

// TokenSource implements [auth.OAuthHandler].
func (c *Client) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	expecting, prover := dpop.Expect(ctx)
	token, err := c.Token(expecting)
	if err != nil || token == "" {
		return nil, err
	}
	kind := "Bearer"
	if p := prover(); p != nil {
		kind = dpop.Scheme
		dpop.Bind(ctx, p)
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token, TokenType: kind}), nil
}

// Authorize implements [auth.OAuthHandler]: it renews a token that the server rejected.
// It never asks a person.
func (c *Client) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	_, sent, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if resp.StatusCode == http.StatusForbidden {
		return c.stepUp(ctx, Secret(sent), resp.Header)
	}
	_, err := c.current(ctx, Secret(sent))
	return err
}

// stepUp handles a refusal because the token has too few scopes (MCP 2025-11-25,
// basic/authorization § Step-Up Authorization Flow). It stores the scopes for the next
// login. Other refusals are left to the caller. A login of another process, which the sent
// token is older than, is used at once.
func (c *Client) stepUp(ctx context.Context, sent Secret, header http.Header) error {
	if !challenge.LacksScope(header) {
		return nil
	}
	challenges, _ := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	wanted := scopesOf(challenges)
	// A login asks for the scopes of the configuration, if there are any.
	if c.options.actsAlone() || len(c.options.Scopes) > 0 && !contains(c.options.Scopes, wanted) {
		return fmt.Errorf("the server wants more rights (%s): add the scopes to the configuration", serverText(strings.Join(wanted, " ")))
	}
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	l, err := newest(ctx, c, sent)
	renewed := l != nil && held != nil && held.AccessToken == sent && !l.Since.After(held.Since) // with the same rights
	if l != nil && sent != "" && l.AccessToken != sent && l.Lasts() && (!renewed || contains(l.Scopes, wanted)) {
		_, err := c.current(ctx, sent)
		return err
	}
	if err == nil && l != nil {
		err = c.options.Store.Update(ctx, l.Key, func(now *Login) (*Login, error) {
			if now == nil {
				return nil, nil
			}
			more := *now
			if all := union(now.Wanted, wanted); len(strings.Join(all, " ")) <= maxWanted {
				more.Wanted = all
			}
			return &more, nil
		})
	}
	needed := &neededError{fmt.Sprintf("the server wants more rights (%s)", serverText(strings.Join(wanted, " "))), c.options.Hint, true}
	return errors.Join(needed, err)
}

// contains reports whether all has each of some, which must not be empty.
func contains(all, some []string) bool {
	return len(some) > 0 && !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *Client) needed(reason string) error { return &neededError{reason, c.options.Hint, false} }

// Stored returns the stored login; nil if there is none.
func (c *Client) Stored(ctx context.Context) (*Login, error) {
	return find(ctx, c.options.Store, c.key)
}

// hold remembers the newest login; c.mu is held.
func (c *Client) hold(l *Login) {
	c.held = l
	c.secrets.Add(string(l.AccessToken), string(l.RefreshToken), string(l.DPoPKey))
}
