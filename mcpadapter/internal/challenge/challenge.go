// SPDX-License-Identifier: Apache-2.0

// Package challenge reads the challenges of servers that ask for an access token (RFC 6750,
// section 3).
package challenge

import (
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// IsToken reports whether a challenge asks for an access token, bound to a key or not.
func IsToken(c oauthex.Challenge) bool { return c.Scheme == "bearer" || c.Scheme == "dpop" }

// LacksScope reports whether a response says that its token has too few scopes (MCP 2025-11-25,
// basic/authorization § Step-Up Authorization Flow). Headers that cannot be parsed do not say it.
func LacksScope(header http.Header) bool {
	challenges, _ := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	return slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool {
		return IsToken(c) && c.Params["error"] == "insufficient_scope"
	})
}
