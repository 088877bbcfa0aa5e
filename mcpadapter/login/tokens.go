// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
)

// The methods of authentication at a token endpoint (RFC 7591, section 2).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// tokens is a successful response of a token endpoint.
type tokens struct {
	access, refresh Secret
	scopes          []string // nil if the response does not say
	at              time.Time
	expiry          time.Time // zero if the response does not say
}

// tokenRequest sends a request to the token endpoint of a login, with the client's
// authentication.
func (c *Client) tokenRequest(ctx context.Context, l *Login, form url.Values) (*tokens, error) {
	if l.Audience != "" {
		form.Set("resource", l.Audience) // RFC 8707, section 2.2
	}
	raw, err := c.post(ctx, l, l.TokenEndpoint, form)
	if err != nil {
		return nil, err
	}
	return parseTokens(raw)
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
	away := func(err error) error { return &awayError{"the authorization server " + l.Issuer, err} }
	resp, err := c.wire.direct().Do(req)
	if err != nil {
		return nil, away(withoutURL(err))
	}
	defer resp.Body.Close()
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

// parseTokens reads a response leniently, because servers differ: expires_in may be a
// string, 0 or missing, and scope may be a list.
func parseTokens(raw []byte) (*tokens, error) {
	var r struct {
		Access    Secret          `json:"access_token"`
		Refresh   Secret          `json:"refresh_token"`
		Type      string          `json:"token_type"`
		ExpiresIn json.RawMessage `json:"expires_in"`
		Scope     json.RawMessage `json:"scope"`
	}
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		return nil, errors.New("the authorization server did not answer with tokens as JSON")
	case repeated(raw) != "":
		return nil, fmt.Errorf("the authorization server answered with the parameter %s more than once", repeated(raw))
	case r.Access == "":
		return nil, errors.New("the authorization server answered without an access token")
	case r.Type != "" && !strings.EqualFold(r.Type, "bearer"):
		return nil, fmt.Errorf("the authorization server issued a token of the type %q, which cannot be used: only Bearer can", serverText(r.Type))
	case strings.ContainsFunc(string(r.Access), func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return nil, errors.New("the authorization server issued a token with characters that are not allowed (RFC 6750)")
	}
	t := &tokens{access: r.Access, refresh: r.Refresh, scopes: parseScope(r.Scope), at: time.Now()}
	if lasts := parseSeconds(r.ExpiresIn); lasts > 0 {
		t.expiry = t.at.Add(lasts)
	}
	return t, nil
}

// repeated returns the name of a parameter that a response has more than once (RFC 6749, section
// 3.2), in any case of letters, as [json.Unmarshal] reads it. Parameters without a meaning may be.
func repeated(raw []byte) string {
	seen, decoder := map[string]bool{}, json.NewDecoder(bytes.NewReader(raw))
	_, _ = decoder.Token() // it is a JSON object
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		var value json.RawMessage
		if err != nil || !isName || decoder.Decode(&value) != nil {
			return ""
		}
		for _, known := range []string{"access_token", "refresh_token", "token_type", "expires_in", "scope"} {
			if !strings.EqualFold(name, known) {
				continue
			}
			if seen[known] {
				return known
			}
			seen[known] = true
		}
	}
	return ""
}

// parseSeconds returns 0 for anything that is not a positive number.
func parseSeconds(raw json.RawMessage) time.Duration {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	const most = 10 * 365 * 24 * 60 * 60
	return time.Duration(min(n, most) * float64(time.Second))
}

func parseScope(raw json.RawMessage) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return slices.Compact(strings.Fields(text))
	}
	var list []string
	_ = json.Unmarshal(raw, &list)
	return list
}

// refresh renews the tokens of a login (RFC 6749, section 6).
func (c *Client) refresh(ctx context.Context, l *Login) (*Login, error) {
	r, err := c.tokenRequest(ctx, l, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {string(l.RefreshToken)}})
	if err != nil {
		return nil, err
	}
	return l.with(r), nil
}
