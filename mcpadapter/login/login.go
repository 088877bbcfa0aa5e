// SPDX-License-Identifier: Apache-2.0

package login

import (
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/tokenresponse"
)

// Secret is a text that is not printed. Its JSON form is the text itself.
type Secret string

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[hidden]"
}

// GoString hides the text.
func (s Secret) GoString() string { return s.String() }

// Key identifies a login.
type Key struct {
	// Issuer is the identifier of the authorization server (RFC 8414).
	Issuer string `json:"issuer"`
	// Resource is the URL of the MCP server, without query and fragment.
	Resource string `json:"resource"`
	// Identity is the user on whose behalf tokens are used; empty for the only user.
	Identity string `json:"identity,omitempty"`
}

// Login is what is stored of a login. Its values must not be changed.
type Login struct {
	Key
	// Audience is the resource that the tokens were requested for (RFC 8707).
	Audience string `json:"audience,omitempty"`

	// ClientID identifies the client to the authorization server. ClientSecret is set if
	// the client registered itself; a secret of the configuration is not stored.
	ClientID     string `json:"client_id"`
	ClientSecret Secret `json:"client_secret,omitempty"`
	// AuthMethod is how the client authenticates to the token endpoint, in the words of
	// RFC 7591: none, client_secret_basic, client_secret_post or private_key_jwt.
	AuthMethod string `json:"auth_method"`

	// DPoPKey is the private key that the tokens are bound to (RFC 9449), as the member d of
	// a JWK of P-256 has it; empty for bearer tokens.
	DPoPKey Secret `json:"dpop_key,omitempty"`

	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`

	AccessToken  Secret `json:"access_token,omitempty"`
	RefreshToken Secret `json:"refresh_token,omitempty"`
	// Scopes are the granted scopes, and Wanted those that the server asked for later.
	Scopes []string `json:"scopes,omitempty"`
	Wanted []string `json:"wanted,omitempty"`

	// Since is when the person logged in.
	Since time.Time `json:"since"`
	// Obtained is when the access token was issued, and Expiry when it expires; zero if
	// the authorization server did not say.
	Obtained time.Time `json:"obtained"`
	Expiry   time.Time `json:"expiry,omitzero"`
	// Ended is why the authorization server ended the login; empty while it lasts. An
	// ended login has no tokens.
	Ended string `json:"ended,omitempty"`

	onlyType string // of tokens; empty if any can be used; not stored
}

// renewEarly is how long before its expiry an access token is renewed, at most.
const renewEarly = time.Minute

// Lasts reports whether there is a token that can be used, or renewed without a person.
func (l *Login) Lasts() bool { return l.Ended == "" && (l.RefreshToken != "" || !l.expired()) }

// expired reports whether the access token has expired.
func (l *Login) expired() bool {
	return l.AccessToken == "" || !l.Expiry.IsZero() && !time.Now().Before(l.Expiry)
}

// usable reports whether the access token will not expire in the next moment.
func (l *Login) usable() bool {
	early := min(renewEarly, l.Expiry.Sub(l.Obtained)/10)
	return l.AccessToken != "" && (l.Expiry.IsZero() || time.Now().Before(l.Expiry.Add(-early)))
}

// usableBut reports whether there is a login whose access token is usable and is not the
// rejected one.
func (l *Login) usableBut(rejected Secret) bool {
	return l != nil && l.usable() && l.AccessToken != rejected
}

// with returns a copy of the login with the tokens of a response.
func (l *Login) with(r *tokenresponse.Tokens) *Login {
	fresh := *l
	fresh.AccessToken, fresh.Obtained, fresh.Expiry = Secret(r.Access), r.At, r.Expiry
	if !r.Bound {
		fresh.DPoPKey = ""
	}
	if r.Refresh != "" { // RFC 6749, section 6: otherwise the old one stays valid
		fresh.RefreshToken = Secret(r.Refresh)
	}
	if r.Scopes != nil {
		fresh.Scopes = r.Scopes
	}
	return &fresh
}

// ended returns a copy of the login without tokens.
func (l *Login) ended(reason string) *Login {
	over := *l
	over.AccessToken, over.RefreshToken, over.Ended = "", "", reason
	return &over
}
