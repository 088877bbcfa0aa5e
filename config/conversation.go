// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/serve"
)

func (c *Conversation) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("instructions", grammar.Text(&c.Instructions)),
		grammar.Key("exchanges", grammar.Integer(&c.Exchanges, 1)),
		grammar.Key("time", grammar.Duration(&c.Time)),
		grammar.Key("tokens", grammar.Integer(&c.Tokens, 1)),
		grammar.Key("parallel", grammar.Integer(&c.Parallel, 1)),
		grammar.Key("final_answer", grammar.Boolean(&c.FinalAnswer)),
		grammar.Key("result_bytes", grammar.Integer(&c.ResultBytes, 1)),
		grammar.Key("spill", grammar.Path(&c.Spill)),
		grammar.Key("tools", grammar.Integer(&c.Tools, 1)),
		grammar.Key("identity", grammar.Each(&c.Identity, grammar.Text)),
	}
}

// checkIdentity reports names of trusted values that identify no user: an empty list, and, if
// clients are identified, a name that none of them has. Everyone would own all conversations.
func (c *Config) checkIdentity(r *grammar.Reader, root *document.Node) {
	conversation := root.Member("conversation")
	if conversation == nil {
		return
	}
	names, isList := conversation.Member("identity").AsList()
	if isList && len(names) == 0 {
		r.Wrong(conversation.Member("identity"), "expected at least one name; without the key, all trusted values identify a user")
	}
	known := c.identityNames()
	for i, name := range c.Conversation.Identity {
		if i < len(names) && known != nil && !slices.Contains(known, name) {
			advice := "give each client its own, such as trusted = {user = \"ada\"}"
			if len(known) > 0 {
				advice = "there are " + strings.Join(known, ", ")
			}
			r.Wrong(names[i], "no client has a trusted value with this name; %s", advice)
		}
	}
}

// identityNames returns the names of the trusted values that a user can have; nil if clients have
// neither a name nor values, and so are one user.
func (c *Config) identityNames() (names []string) {
	if c.Serve == nil || len(c.Serve.Clients) == 0 && c.Serve.OIDC == nil {
		return nil
	}
	if slices.ContainsFunc(c.Serve.Clients, func(client serve.Client) bool { return client.Name != "" }) {
		names = []string{}
	}
	for name := range c.Trusted {
		names = append(names, name)
	}
	for _, client := range c.Serve.Clients {
		for name := range client.Trusted {
			names = append(names, name)
		}
	}
	if c.Serve.OIDC != nil {
		names = append(names, "iss", "sub") // of each token
		for name := range c.Serve.OIDC.Trusted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
