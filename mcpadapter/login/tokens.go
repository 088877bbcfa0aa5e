// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/consort-go/consort/mcpadapter/internal/tokenresponse"
)

// The methods of authentication at a token endpoint (RFC 7591, section 2).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// tokenRequest sends a request to the token endpoint of a login, with the client's
// authentication.
func (c *Client) tokenRequest(ctx context.Context, l *Login, form url.Values) (*tokenresponse.Tokens, error) {
	if l.Audience != "" {
		form.Set("resource", l.Audience) // RFC 8707, section 2.2
	}
	raw, err := c.post(ctx, l, l.TokenEndpoint, form)
	if l.DPoPKey != "" && isCode(err, dpop.NonceDemanded) { // RFC 9449, section 8: the next proof has the nonce
		raw, err = c.post(ctx, l, l.TokenEndpoint, form)
	}
	if err != nil {
		return nil, err
	}
	r, err := tokenresponse.Parse(raw, l.DPoPKey != "")
	if err == nil && l.DPoPKey != "" && !r.Bound && (l.onlyType != "" || !l.Obtained.IsZero()) {
		return nil, errors.New("the authorization server issued a token that is not bound to the key of this client, which the server demands, or the login had before: it is not used (RFC 9449, section 5); log in again, or tell who runs the authorization server")
	}
	return r, err
}

// post sends a form with the client's authentication and returns the body of a successful
// response. Its error is an [*oauthError] if the server answered with one, and an
// [*awayError] if it did not do its work.
func (c *Client) post(ctx context.Context, l *Login, endpoint string, form url.Values) ([]byte, error) {
	secret := l.ClientSecret
	if secret == "" && l.ClientID == c.options.ClientID {
		secret = c.options.ClientSecret
	}
	if form.Set("client_id", l.ClientID); l.ClientID == "" { // with the assertion of a workload
		form.Del("client_id")
	}
	switch l.AuthMethod {
	case authPost:
		form.Set("client_secret", string(secret))
	case authBasic:
		form.Del("client_id")
	case authKey:
		if err := c.authenticate(form, l); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the address of the authorization server cannot be used")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if l.AuthMethod == authBasic { // RFC 6749, section 2.3.1: both are form-encoded first
		req.SetBasicAuth(url.QueryEscape(l.ClientID), url.QueryEscape(string(secret)))
	}
	if err := c.wire.prove(req, l); err != nil {
		return nil, err
	}
	return c.wire.exchange(req, l.Issuer)
}

// exchange sends a request to an authorization server; see post.
func (w *wire) exchange(req *http.Request, issuer string) ([]byte, error) {
	away := func(err error) error { return &awayError{"the authorization server " + issuer, err} }
	resp, err := w.direct().Do(req)
	if err != nil {
		return nil, away(withoutURL(err))
	}
	defer resp.Body.Close()
	w.nonces.Learn(req.URL, false, resp.Header, "")
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, away(err)
	}
	var refused struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	isJSON := json.Unmarshal(raw, &refused) == nil
	switch {
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return nil, away(&statusError{resp.StatusCode})
	case isJSON && (refused.Error == "server_error" || refused.Error == "temporarily_unavailable"):
		return nil, away(errors.New(refused.Error))
	case isJSON && refused.Error != "":
		return nil, &oauthError{serverText(refused.Error), serverText(refused.Description)}
	case resp.StatusCode != http.StatusOK:
		return nil, away(&statusError{resp.StatusCode})
	}
	return raw, nil
}

// serverText makes a short text of a server printable.
func serverText(text string) string { return textcut.Bytes(display.Line(text), 200) }

// refresh renews the tokens of a login (RFC 6749, section 6).
func (c *Client) refresh(ctx context.Context, l *Login) (*Login, error) {
	r, err := c.tokenRequest(ctx, l, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {string(l.RefreshToken)}})
	if err != nil {
		return nil, err
	}
	return l.with(r), nil
}
