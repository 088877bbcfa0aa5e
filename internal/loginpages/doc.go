// SPDX-License-Identifier: Apache-2.0

// Package loginpages lets the people behind a gateway log in at its servers, each for
// themselves, in a browser.
//
// A person gets the address of a page of the gateway (MCP 2025-11-25, client/elicitation §
// URL Mode). The page proves that the browser belongs to the one whose call needs the
// login: they enter the token that their client uses. A link that reaches another person is
// useless to both (client/elicitation § Phishing). Then it says what will be allowed to
// whom, and only a button leads on to the authorization server (security best practices §
// Confused Deputy Problem). The redirect is accepted from the same browser only.
package loginpages
