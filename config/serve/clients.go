// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"time"

	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse/budget"
)

// Client is a client that is served over HTTP or gRPC.
type Client struct {
	// Token is the client's bearer token. TokenHash is its hash instead: sha256: and 64
	// hexadecimal digits. Certificate is the name in the client's certificate:
	// one of its alternative names (URI, DNS or email), or the common name if it has none.
	// Exactly one of the three is set.
	Token       values.Value
	TokenHash   string
	Certificate string
	// Expires is when the token expires; zero means never.
	Expires time.Time
	// Name identifies the client in logs, metrics and the audit; may be empty.
	Name string
	// Trusted holds the trusted values of the client; may be nil.
	Trusted map[string]values.Trusted
	// Allow and Deny are globs: each matches the name of an ensemble, the name of a tool
	// or prompt in the roster ([ensemble.NameFor]), or the URI of a resource. What Deny
	// matches, or what Allow does not match if it is not empty, does not exist for the
	// client. Both need a Name. [Options].Rules apply too.
	Allow, Deny []string
	// Profile is the name of the only profile that the client may use, at /mcp too and over
	// gRPC; it needs a Name. Empty allows all.
	Profile string
	// Approve says that each call of the client needs an approval, unless its tool says that
	// it changes nothing and its ensemble is trusted in that; it needs a Name. Otherwise
	// calls need one only where a rule says so.
	Approve bool
	// Console is what the client may do in the console: "off", "read", "answer", "audit" or "operate";
	// it needs a Name. Empty means [Options].Console.
	Console string
}

// Profile is a named part of the offer. Within it, the lists and rules of each client apply
// too.
type Profile struct {
	// Name is the end of the path, as in /mcp/NAME. Required.
	Name string
	// Allow and Deny have the same form as in [Client].
	Allow, Deny []string
	// Search is like [Options].Search, for clients in the profile.
	Search bool
}

// ResourceMetadata is the metadata of a protected resource (RFC 9728).
type ResourceMetadata struct {
	// Resource is the URL of the server as clients use it. Required.
	Resource values.Value
	// AuthorizationServers are the issuers of its tokens.
	AuthorizationServers []values.Value
	// Scopes are the scopes that a token may need; may be nil.
	Scopes []string
}

// Action is what a rule does with the items that it is about.
type Action string

// The actions of a rule.
const (
	Allow Action = "allow" // clients may use them
	Deny  Action = "deny"  // they are hidden
	Ask   Action = "ask"   // each call needs an approval
)

// TLS names files in PEM form.
type TLS struct {
	// Certificate and Key are those of this server; set both or neither. They are read again for each
	// connection.
	Certificate, Key values.Value
	// ClientCA has the root certificates for verifying clients, which are read once; empty asks for no
	// certificates.
	ClientCA values.Value
}

// Rule decides what served clients may use: the items that meet all its conditions.
// An empty or nil condition is always met. Conditions that config.Rule has too
// mean the same here.
type Rule struct {
	// Action is [Allow], [Deny] or [Ask]. Required. An item that a rule
	// denies is hidden, whatever another allows. If a client has rules that allow, or an
	// allow list, all else is hidden. A rule that asks hides nothing: the calls of the tools
	// that it is about need an approval each.
	Action Action
	// Who and Within are for Ask: the only person who may answer, and the time for
	// that, 24 hours by default, for which an answer then holds. If Who is empty, the user
	// of the client is asked, if the client can ask, and everyone who can write to the
	// conversation store may answer.
	Who    string
	Within time.Duration
	// Clients are globs for the names of the clients that the rule is about. Without any,
	// it is about each client, and about those without a name.
	Clients []string
	// When is a condition about the trusted values of the client, such as
	// "ops" in trusted.roles; empty holds always. If it cannot be evaluated, because a value
	// has another form, a rule that denies applies, and one that allows does not.
	When string
	// Ensembles are globs for the name of the ensemble.
	Ensembles []string
	// Tools, Prompts and Resources are globs for the ensemble's own name of a tool or
	// prompt, and for the URI of a resource or the text of a template. If one of them is
	// set, the rule is about the kinds that have globs.
	Tools, Prompts, Resources []string
	// A tool must have these hints, as far as its ensemble trusts them
	// ([ensemble.Tool.TrustedHints]), with the defaults of MCP applied. With one of them,
	// a rule is about tools only.
	ReadOnly, Idempotent, Destructive, OpenWorld *bool
}

// Budget limits how many calls each of some clients may make in a window.
type Budget struct {
	// Clients are globs for the names of the clients. Without any, each client has the
	// budget, and those without a name.
	Clients []string
	// Window is the calendar period in UTC: an hour, a day or a month. Required.
	Window budget.Window
	// Calls is the number of calls. Required.
	Calls int64
}

// OIDC describes the access tokens of an issuer that identify clients. Package
// mcpadapter/server/oidc has the details.
type OIDC struct {
	Issuer   values.Value
	Audience values.Value
	Scopes   []string
	// Name is the claim with the name of the client; default sub.
	Name string
	// Trusted are the claims that become trusted values, by the name of the value.
	Trusted map[string]string
	// ClientID and ClientSecret are those of the gateway's own pages at the issuer, where people
	// show who they are before they log in at a server. Without ClientID they cannot, and enter
	// the token of their client; ClientSecret is empty for a public client.
	ClientID, ClientSecret values.Value
}
