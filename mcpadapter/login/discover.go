// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/mcpadapter/internal/challenge"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// authServer is an authorization server.
type authServer struct {
	oauthex.AuthServerMeta
	// DeviceAuthorizationEndpoint is defined by RFC 8628, section 4.
	DeviceAuthorizationEndpoint string `json:"device_authorization_endpoint"`
	// DPoPAlgorithms is defined by RFC 9449, section 5.1.
	DPoPAlgorithms []string `json:"dpop_signing_alg_values_supported"`
}

// discovery is what a server says about its authorization.
type discovery struct {
	audience string   // the resource that tokens are for
	scopes   []string // to request
	server   *authServer
	binding
}

// discover finds the authorization server (MCP 2025-11-25, basic/authorization §
// Authorization Server Discovery).
func (c *Client) discover(ctx context.Context) (*discovery, error) {
	challenged, challenges, err := c.challenge(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	resource, err := c.resourceMetadata(ctx, challenges)
	if err != nil {
		return nil, err
	}
	d := &discovery{audience: c.key.Resource, scopes: scopesOf(challenges)}
	legacy := resource == nil
	var issuers []string
	if legacy { // MCP 2025-03-26: the authorization server has the origin of the server
		origin := *c.server
		origin.Path, origin.RawPath = "", ""
		issuers = []string{origin.String()}
		if only := c.options.Issuer; only != "" && challenged && !sameIssuer(only, issuers[0]) {
			issuers, legacy = []string{only}, false
		}
	} else {
		d.audience, issuers = resource.Resource, resource.AuthorizationServers
		if d.scopes == nil {
			d.scopes = resource.ScopesSupported
		}
	}
	issuer, err := chooseIssuer(c.options.Issuer, issuers)
	if err != nil && legacy && !challenged {
		return nil, ErrNeverRequired
	}
	if err != nil {
		return nil, err
	}
	d.server, err = c.serverMetadata(ctx, issuer, legacy)
	if err == nil && d.server == nil && !challenged {
		return nil, ErrNeverRequired
	}
	if err == nil && d.server == nil {
		d.server = &authServer{AuthServerMeta: oauthex.AuthServerMeta{
			Issuer:                issuer,
			AuthorizationEndpoint: issuer + "/authorize",
			TokenEndpoint:         issuer + "/token",
			RegistrationEndpoint:  issuer + "/register",
		}}
	}
	if err == nil {
		d.binding, err = bindingFor(d.server, resource, challenges)
	}
	return d, err
}

// challenge sends a harmless request without a token, and returns whether the server
// demands one and how.
func (c *Client) challenge(ctx context.Context) (demanded bool, challenges []oauthex.Challenge, err error) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, nil, errors.New("its URL cannot be used")
	}
	for name, value := range c.options.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.wire.direct().Do(req)
	if err != nil {
		return false, nil, withoutURL(err)
	}
	resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return false, nil, &statusError{resp.StatusCode}
	case resp.StatusCode != http.StatusUnauthorized:
		return false, nil, nil
	}
	challenges, _ = oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")) // what cannot be read does not help
	return true, challenges, nil
}

// resourceMetadata returns the metadata of the server (RFC 9728); nil if there is none.
func (c *Client) resourceMetadata(ctx context.Context, challenges []oauthex.Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := *c.server
	root.Path, root.RawPath = "", ""
	places := []string{root.String() + wellKnown + strings.TrimRight(c.server.EscapedPath(), "/"), root.String() + wellKnown}
	named := ""
	for _, challenge := range challenges {
		if place := challenge.Params["resource_metadata"]; place != "" && c.wire.checkEndpoint(place) == nil {
			named, places = place, slices.Insert(places, 0, place)
			break
		}
	}
	for _, place := range slices.Compact(places) {
		var found oauthex.ProtectedResourceMetadata
		err := c.wire.document(ctx, place, &found)
		switch {
		case refused(err), missing(err) && place != named:
			continue
		case err != nil:
			return nil, &awayError{"the metadata of the server", err}
		case !covers(c.server, found.Resource):
			return nil, fmt.Errorf("the metadata of the server is for another resource, %q: its tokens would not be for this server", found.Resource)
		case len(found.AuthorizationServers) == 0:
			return nil, errors.New("the metadata of the server names no authorization server")
		}
		return &found, nil
	}
	return nil, nil
}

// covers reports whether a resource of metadata is a server, or a parent of its path on
// the same origin (RFC 9728, section 3.3; MCP allows a less specific URI).
func covers(server *url.URL, resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Scheme != server.Scheme || !strings.EqualFold(u.Host, server.Host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	parent := strings.TrimRight(u.EscapedPath(), "/") + "/"
	return strings.HasPrefix(strings.TrimRight(server.EscapedPath(), "/")+"/", parent)
}

// chooseIssuer chooses from the authorization servers of a server; only is the one that is
// allowed, or empty.
func chooseIssuer(only string, issuers []string) (string, error) {
	if only == "" {
		return issuers[0], nil
	}
	for _, issuer := range issuers {
		if sameIssuer(issuer, only) {
			return issuer, nil
		}
	}
	return "", fmt.Errorf("the authorization server of the server is %q, and only %q is allowed", issuers[0], only)
}

// sameIssuer compares two identifiers, and ignores a slash at the end: many servers are
// not exact about it.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// serverMetadata returns the metadata of an authorization server; nil if a legacy server
// has none.
func (c *Client) serverMetadata(ctx context.Context, issuer string, legacy bool) (*authServer, error) {
	places, err := metadataPlaces(issuer)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		found := new(authServer)
		err := c.wire.document(ctx, place, found)
		switch {
		case missing(err):
			continue
		case err != nil:
			return nil, &awayError{fmt.Sprintf("the authorization server %s", issuer), err}
		}
		return found, c.checkServer(found, issuer)
	}
	if legacy {
		return nil, nil
	}
	return nil, fmt.Errorf("the authorization server %s has no metadata, so that it cannot be checked for PKCE", issuer)
}

// metadataPlaces returns where the metadata of an issuer may be (RFC 8414, section 3;
// OpenID Connect Discovery 1.0, section 4).
func metadataPlaces(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the identifier of the authorization server is not a URL: %q", issuer)
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	root := u.Scheme + "://" + u.Host
	places := []string{
		root + "/.well-known/oauth-authorization-server" + path,
		root + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	return places, nil
}

// checkServer returns an error if an authorization server must not be used.
func (c *Client) checkServer(s *authServer, issuer string) error {
	if !sameIssuer(s.Issuer, issuer) { // RFC 8414, section 3.3
		return fmt.Errorf("the metadata of the authorization server %s is for another issuer, %q", issuer, s.Issuer)
	}
	for _, endpoint := range []struct {
		name, address string
		required      bool
	}{
		{"token_endpoint", s.TokenEndpoint, true},
		{"authorization_endpoint", s.AuthorizationEndpoint, !c.options.actsAlone()},
		{"registration_endpoint", s.RegistrationEndpoint, false},
		{"revocation_endpoint", s.RevocationEndpoint, false},
		{"device_authorization_endpoint", s.DeviceAuthorizationEndpoint, false},
	} {
		if endpoint.address == "" && !endpoint.required {
			continue
		}
		if err := c.wire.checkEndpoint(endpoint.address); err != nil {
			return fmt.Errorf("the %s of the authorization server %s %w", endpoint.name, issuer, err)
		}
	}
	if !c.options.actsAlone() && !slices.Contains(s.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %s does not offer PKCE with S256 (code_challenge_methods_supported), which MCP requires", issuer)
	}
	return nil
}

// scopesOf returns the scopes that a challenge asks for; nil if it names none.
func scopesOf(challenges []oauthex.Challenge) []string {
	for _, c := range challenges {
		if scopes := strings.Fields(c.Params["scope"]); challenge.IsToken(c) && len(scopes) > 0 {
			return scopes
		}
	}
	return nil
}
