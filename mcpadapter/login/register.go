// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/hostnames"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
)

// identify returns a login with the client's identity: the one that was registered
// beforehand, the metadata document, or a new registration, with the scopes that are to be
// requested: a client may be held to the registered ones (RFC 7591, section 2).
func (c *Client) identify(ctx context.Context, d *discovery, scopes []string, grant, redirect string) (*Login, error) {
	s := d.server
	l := &Login{
		Key:                Key{s.Issuer, c.key.Resource, c.key.Identity},
		Audience:           d.audience,
		AuthMethod:         authNone,
		TokenEndpoint:      s.TokenEndpoint,
		RevocationEndpoint: s.RevocationEndpoint,
		DPoPKey:            d.key,
		onlyType:           d.onlyType,
	}
	l.ClientID = c.options.clientID(s)
	switch {
	case c.options.ClientID != "":
		l.AuthMethod = c.authMethod(s)
		return l, nil
	case l.ClientID != "":
		return l, nil
	case s.RegistrationEndpoint == "":
		return nil, fmt.Errorf("the authorization server %s does not let clients register themselves: register one there, and put its ID in the configuration", s.Issuer)
	}
	metadata := &oauthex.ClientRegistrationMetadata{
		ClientName:              c.options.ClientName,
		RedirectURIs:            []string{}, // RFC 7591, section 2: an array, also without redirects
		GrantTypes:              []string{grant, grantRefresh},
		TokenEndpointAuthMethod: registeredMethod(s),
		ApplicationType:         applicationType(redirect),
		Scope:                   strings.Join(scopes, " "),
	}
	if grant == grantCode {
		metadata.RedirectURIs, metadata.ResponseTypes = []string{redirect}, []string{"code"}
	}
	return l, c.wire.register(ctx, s, l, metadata)
}

// clientID returns the ID of the client to an authorization server; empty if it registers itself.
func (o *Options) clientID(s *authServer) string {
	if o.ClientID == "" && s.ClientIDMetadataDocumentSupported {
		return o.ClientMetadata
	}
	return o.ClientID
}

// register registers the client, and writes its identity to a login.
func (w *wire) register(ctx context.Context, s *authServer, l *Login, metadata *oauthex.ClientRegistrationMetadata) error {
	client := w.direct()
	send := client.Transport.RoundTrip
	var answer *http.Response
	client.Transport = roundTrip(func(r *http.Request) (_ *http.Response, err error) {
		answer, err = send(r)
		return answer, err
	})
	r, err := oauthex.RegisterClient(ctx, s.RegistrationEndpoint, metadata, client)
	if err != nil {
		return fmt.Errorf("the authorization server did not register the client: %w", registrationError(err, answer))
	}
	l.ClientID = r.ClientID
	if r.ClientSecret != "" && r.TokenEndpointAuthMethod != authNone { // RFC 7591, section 3.2.1: the response counts
		l.ClientSecret, l.AuthMethod = Secret(r.ClientSecret), authBasic // RFC 7591, section 2: the default
		if r.TokenEndpointAuthMethod == authPost {
			l.AuthMethod = authPost
		}
	}
	return nil
}

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (send roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return send(r) }

// registrationError returns the error of a registration for a person; answer is nil without a
// response. The texts of go-sdk have the body of the response, which may hold the client's secret.
func registrationError(err error, answer *http.Response) error {
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok && refused.ErrorCode != "" {
		return &oauthError{serverText(refused.ErrorCode), serverText(refused.ErrorDescription)}
	}
	switch {
	case answer == nil:
		return errors.New(serverText(withoutURL(err).Error()))
	case answer.StatusCode == http.StatusOK, answer.StatusCode == http.StatusCreated:
		return errors.New("its answer is not a registration (RFC 7591, section 3.2.1)")
	}
	return &statusError{answer.StatusCode}
}

// applicationType returns the kind of client that receives redirects at an address (OpenID
// Connect Dynamic Client Registration 1.0, section 2).
func applicationType(redirect string) string {
	if u, err := url.Parse(redirect); redirect != "" && err == nil && !hostnames.IsThisMachine(u.Hostname()) {
		return "web"
	}
	return "native"
}

// authMethod returns how the client that was registered beforehand authenticates.
func (c *Client) authMethod(s *authServer) string {
	if c.signer != nil {
		return authKey
	}
	return authMethod(s, c.options.ClientSecret)
}

// authMethod returns how a client with a secret authenticates.
func authMethod(s *authServer, secret Secret) string {
	methods := s.TokenEndpointAuthMethodsSupported
	switch {
	case secret == "":
		return authNone
	case slices.Contains(methods, authPost) && !slices.Contains(methods, authBasic):
		return authPost
	}
	return authBasic // RFC 8414, section 2: the default
}

// registeredMethod returns how a client that registers itself asks to authenticate:
// without a secret if the server allows that, because a program on the person's machine
// cannot keep one from them.
func registeredMethod(s *authServer) string {
	methods := s.TokenEndpointAuthMethodsSupported
	if len(methods) == 0 || slices.Contains(methods, authNone) {
		return authNone
	}
	if slices.Contains(methods, authBasic) {
		return authBasic
	}
	return authPost
}

// wanted returns the scopes of a login: those of the configuration, or else those that
// the server asks for and that the former login at the same authorization server had, since
// another one may not know them (RFC 6749, section 3.3), and to these the one that makes OpenID
// providers issue refresh tokens (SEP-2207).
func (d *discovery) wanted(ctx context.Context, c *Client) []string {
	if len(c.options.Scopes) > 0 {
		return c.options.Scopes
	}
	scopes := d.scopes
	// A former login that cannot be read is replaced.
	if former, _ := find(ctx, c.options.Store, Key{d.server.Issuer, c.key.Resource, c.key.Identity}); former != nil {
		scopes = union(scopes, union(former.Scopes, former.Wanted))
	}
	const offline = "offline_access"
	if len(scopes) > 0 && slices.Contains(d.server.ScopesSupported, offline) && !slices.Contains(scopes, offline) {
		scopes = append(slices.Clone(scopes), offline)
	}
	return scopes
}
