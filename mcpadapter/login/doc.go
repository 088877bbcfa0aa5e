// SPDX-License-Identifier: Apache-2.0

// Package login gives connections to MCP servers the tokens of OAuth logins that last:
// they are stored, shared between processes, and renewed.
//
// A [Client] belongs to one server. Connections ask it for tokens:
//
//	client, err := login.New(&login.Options{URL: address, Store: store})
//	...
//	defer client.Close()
//	source := mcpadapter.HTTP(address, &mcpadapter.HTTPOptions{Token: client.Token, OAuth: client})
//
// A person logs in with [Client.Login], in this process or in another one that uses the
// same [Store]. Until then, connecting fails with [ensemble.ErrNeedsLogin]. A client with
// Options.Machine logs in by itself, with its client ID and secret.
//
// # What is checked
//
// The client follows the authorization rules of MCP 2025-11-25 (basic/authorization):
//
//   - The server names its authorization server (RFC 9728), whose metadata must have the
//     same issuer (RFC 8414, OpenID Connect Discovery).
//   - The authorization server must offer PKCE with S256. Only servers of MCP 2025-03-26,
//     which have no metadata at all, are used without that check; PKCE is used there too.
//   - The redirect must have the state of this login, once, and the issuer if the
//     authorization server sends issuers (RFC 9207).
//   - Tokens are requested for the server alone (RFC 8707), and are sent only to it. A
//     refresh token is sent only to the token endpoint that issued it.
//   - Tokens are bound to a key of the login (DPoP, RFC 9449) if the authorization server
//     offers ES256 and the server says, in its metadata or its challenge, that it knows
//     DPoP. Bearer tokens that come instead are used only in a new login at a server that
//     takes them; a login that was bound stays bound.
//   - Requests with secrets do not follow redirects. All endpoints use HTTPS, except on
//     this machine.
//
// # How logins last
//
// One process renews a login at a time; the others wait for it and use its result, so
// that a refresh token that may be used only once is used only once. Only the answer
// invalid_grant ends a login. An authorization server that does not answer, or answers
// with anything else, changes nothing that is stored.
package login
