// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// Logout removes the stored login, and asks the authorization server to revoke its tokens
// (RFC 7009) if it offers that. found is false if no login was stored. An error after the
// login was removed says that the tokens may still be valid.
func (c *Client) Logout(ctx context.Context) (found bool, err error) {
	l, err := find(ctx, c.options.Store, c.key)
	if l == nil || err != nil {
		return false, err
	}
	err = c.options.Store.Update(ctx, l.Key, func(now *Login) (*Login, error) {
		l = now
		return nil, nil
	})
	c.mu.Lock()
	c.held, c.unsaved = nil, nil
	c.mu.Unlock()
	if err != nil || l == nil {
		return l != nil, err
	}
	token, kind := l.RefreshToken, "refresh_token"
	if token == "" {
		token, kind = l.AccessToken, "access_token"
	}
	switch {
	case token == "":
		return true, nil
	case l.RevocationEndpoint == "":
		return true, errors.New("the authorization server offers no way to revoke tokens: they stay valid until they expire")
	}
	_, err = c.post(ctx, l, l.RevocationEndpoint, url.Values{"token": {string(token)}, "token_type_hint": {kind}})
	if err != nil {
		err = fmt.Errorf("the tokens were removed here, and may still be valid: %w", err)
	}
	return true, err
}
