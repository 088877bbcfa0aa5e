// SPDX-License-Identifier: Apache-2.0

package login

import (
	"crypto/rand"
	"errors"
	"net/url"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/jwtsign"
)

const (
	authKey         = "private_key_jwt" // RFC 7591, section 2, and OpenID Connect Core 1.0, section 9
	assertionType   = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionExpiry = 2 * time.Minute
)

// authenticate adds a signed assertion of the client to a request (RFC 7523, section 2.2).
// Its audience is the issuer, so that no other authorization server accepts it.
func (c *Client) authenticate(form url.Values, l *Login) error {
	if c.signer == nil {
		return errors.New("the login was made with a client key, which the configuration does not have any more")
	}
	now := time.Now()
	assertion, err := jwtsign.Sign(c.signer, nil, map[string]any{
		"iss": l.ClientID, "sub": l.ClientID, "aud": l.Issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionExpiry).Unix(),
	})
	if err != nil {
		return err
	}
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", assertion)
	return nil
}
