// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Subject is a token that says for whom a client acts.
type Subject struct {
	Token Secret
	// Type is the type of the token (RFC 8693, section 3); default an access token.
	Type string
}

// The types of tokens (RFC 8693, section 3; SEP-990).
const (
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantAssertion  = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// Provider is the identity provider of an organization, which decides what its people may
// use (enterprise-managed authorization, SEP-990). ClientID and ClientSecret are those of
// the client there; the secret is empty for a public client.
type Provider struct {
	Issuer       string
	ClientID     string
	ClientSecret Secret
}

// checkSubject returns an error if the options of an exchange do not fit.
func (o *Options) checkSubject() error {
	switch {
	case o.Subject == nil && (o.Provider != nil || o.Assertion || o.Audience != ""):
		return errors.New("an exchange of tokens needs the token of a subject")
	case o.Subject == nil:
		return nil
	case o.Machine:
		return errors.New("a client acts either for itself or for a subject")
	case o.ClientID == "" && !o.Assertion:
		return errors.New("an exchange of tokens needs a client ID")
	case o.Provider == nil && o.Issuer == "":
		return errors.New("the token of a subject is sent to one authorization server only: set its issuer")
	case o.Provider != nil && (o.Provider.Issuer == "" || o.Provider.ClientID == ""):
		return errors.New("an identity provider needs an issuer and the client ID there")
	}
	return nil
}

// actsAlone reports whether tokens are got without a person.
func (o *Options) actsAlone() bool { return o.Machine || o.Subject != nil }

// tokenServer returns where the client gets tokens without a person. The token of a subject is
// exchanged by the issuer of the options, whatever the server says.
func (c *Client) tokenServer(ctx context.Context) (*discovery, error) {
	o := &c.options
	if o.Subject == nil || o.Provider != nil || o.Assertion {
		return c.discover(ctx)
	}
	server, err := c.serverMetadata(ctx, o.Issuer, false)
	if err != nil {
		return nil, err
	}
	return &discovery{audience: c.key.Resource, server: server}, nil
}

// aloneForm returns the request for a token without a person.
func (c *Client) aloneForm(ctx context.Context, found *discovery, scopes []string) (url.Values, error) {
	o := &c.options
	if o.Subject == nil {
		return url.Values{"grant_type": {"client_credentials"}}, nil
	}
	subject, err := o.Subject(ctx)
	if err == nil && subject.Token == "" {
		err = errors.New("the token of the user is not known")
	}
	if err != nil {
		return nil, &exchangeError{err}
	}
	c.secrets.Add(string(subject.Token))
	switch {
	case o.Assertion: // RFC 7523, section 2.1
		return url.Values{"grant_type": {grantAssertion}, "assertion": {string(subject.Token)}}, nil
	case o.Provider != nil:
		grant, err := c.identityGrant(ctx, found, subject, scopes)
		if err != nil {
			return nil, err
		}
		return url.Values{"grant_type": {grantAssertion}, "assertion": {string(grant)}}, nil
	}
	form := exchangeForm(subject, accessTokenType) // RFC 8693, section 2.1
	if o.Audience != "" {
		form.Set("audience", o.Audience)
	}
	return form, nil
}

func exchangeForm(subject Subject, wanted string) url.Values {
	return url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {wanted},
		"subject_token": {string(subject.Token)}, "subject_token_type": {cmp.Or(subject.Type, accessTokenType)},
	}
}

// identityGrant asks the identity provider for a grant for the authorization server of the
// MCP server (SEP-990, Identity Assertion JWT Authorization Grant).
func (c *Client) identityGrant(ctx context.Context, found *discovery, subject Subject, scopes []string) (Secret, error) {
	p := c.options.Provider
	server, err := c.serverMetadata(ctx, p.Issuer, false)
	if err != nil {
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	form := exchangeForm(subject, oauthex.TokenTypeIDJAG)
	form.Set("audience", found.server.Issuer)
	form.Set("resource", found.audience)
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	at := &Login{Key: Key{Issuer: server.Issuer}, ClientID: p.ClientID, ClientSecret: p.ClientSecret, AuthMethod: authMethod(server, p.ClientSecret), TokenEndpoint: server.TokenEndpoint}
	raw, err := c.post(ctx, at, at.TokenEndpoint, form)
	if err != nil {
		return "", c.exchangeRefused(p.Issuer, err)
	}
	var r struct {
		Grant Secret `json:"access_token"`
		Type  string `json:"issued_token_type"`
	}
	if json.Unmarshal(raw, &r) != nil || r.Grant == "" || r.Type != oauthex.TokenTypeIDJAG {
		return "", &exchangeError{fmt.Errorf("the identity provider %s did not answer with a grant for %s", p.Issuer, found.server.Issuer)}
	}
	c.secrets.Add(string(r.Grant))
	return r.Grant, nil
}

// exchangeRefused returns the error of a request for a token without a person.
func (c *Client) exchangeRefused(issuer string, err error) error {
	refused, ok := errors.AsType[*oauthError](err)
	switch {
	case !ok:
		return err
	case c.options.Subject == nil:
		return fmt.Errorf("the authorization server %s refuses the client: %w", issuer, refused)
	}
	return &exchangeError{fmt.Errorf("%s refuses to issue a token for the user: %w", issuer, refused)}
}

// exchangeError says that there is no token for a subject.
type exchangeError struct{ cause error }

func (e *exchangeError) Error() string { return e.cause.Error() }

func (e *exchangeError) Unwrap() []error {
	return []error{e.cause, &invoker.Failure{
		Code:    invoker.Unauthorized,
		Message: "The call was not made, because the server gives no access to this user: " + e.cause.Error() + ".",
	}}
}
