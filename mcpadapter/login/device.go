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
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/tokenresponse"
)

// The defaults and limits of RFC 8628.
const (
	deviceInterval = 5 * time.Second // section 3.5: between requests, and more for each slow_down
	deviceLifetime = 15 * time.Minute
)

// byDevice runs the device authorization flow (RFC 8628).
func (c *Client) byDevice(ctx context.Context, d *discovery, scopes []string, enter func(context.Context, Code) error) (*Login, error) {
	l, err := c.identify(ctx, d, scopes, grantDevice, "")
	if err != nil {
		return nil, err
	}
	form := url.Values{"resource": {l.Audience}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	raw, err := c.post(ctx, l, d.server.DeviceAuthorizationEndpoint, form)
	if err != nil {
		return nil, fmt.Errorf("asking for a code: %w", err)
	}
	var r struct {
		DeviceCode Secret          `json:"device_code"`
		UserCode   string          `json:"user_code"`
		Address    string          `json:"verification_uri"`
		Complete   string          `json:"verification_uri_complete"`
		ExpiresIn  json.RawMessage `json:"expires_in"`
		Interval   json.RawMessage `json:"interval"`
	}
	if json.Unmarshal(raw, &r) != nil || r.DeviceCode == "" || r.UserCode == "" || c.wire.checkEndpoint(r.Address) != nil {
		return nil, errors.New("the authorization server did not answer with a code to enter")
	}
	if c.wire.checkEndpoint(r.Complete) != nil {
		r.Complete = ""
	}
	expiry := time.Now().Add(min(cmp.Or(tokenresponse.Seconds(r.ExpiresIn), deviceLifetime), time.Hour))
	ctx, cancel := context.WithDeadlineCause(ctx, expiry, errors.New("the code has expired"))
	defer cancel()
	if err := enter(ctx, Code{serverText(r.Address), serverText(r.UserCode), serverText(r.Complete), expiry}); err != nil {
		return nil, err
	}
	return c.poll(ctx, l, scopes, r.DeviceCode, max(cmp.Or(tokenresponse.Seconds(r.Interval), deviceInterval), time.Second))
}

// poll asks for the tokens until the person has entered the code (RFC 8628, section 3.4).
func (c *Client) poll(ctx context.Context, l *Login, scopes []string, code Secret, interval time.Duration) (*Login, error) {
	for {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil, fmt.Errorf("no login has arrived: %w", context.Cause(ctx))
		}
		done, err := c.finish(ctx, l, scopes, url.Values{"grant_type": {grantDevice}, "device_code": {string(code)}})
		_, away := errors.AsType[*awayError](err)
		switch {
		case err == nil:
			return done, nil
		case isCode(err, "slow_down"), away && ctx.Err() == nil:
			interval += deviceInterval
		case isCode(err, "authorization_pending"):
		default:
			return nil, err
		}
	}
}
