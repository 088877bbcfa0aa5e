// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	"github.com/consort-go/consort/ensemble"
)

// Explain reports whether a served client may use an item, and why: the element of a list,
// or the rule, with its position in the file. client is empty for the clients without a
// name, and for the one over standard input and output. It returns an error if no client
// has the name, and none can have it. trusted are the trusted values of the client, by name,
// in the form that encoding/json decodes; nil means those of the configuration.
func (c *Config) Explain(client string, trusted map[string]any, item ensemble.Item) (allowed bool, why string, err error) {
	serve := c.Serve
	if serve == nil {
		serve = &Serve{}
	}
	if client != "" && serve.OIDC == nil && !slices.ContainsFunc(serve.Clients, func(one Client) bool { return one.Name == client }) {
		return false, "", fmt.Errorf("no client is named %q%s", client, serve.clientNames())
	}
	profile := serve.profileOf(client)
	when, err := serve.conditions()
	if err == nil && trusted == nil {
		trusted, err = serve.trustedOf(client)
	}
	if err != nil {
		return false, "", err
	}
	if c.Tools.isForModels(&item) {
		return false, "it is only for the model; clients have find_tools and call_tool at /mcp/search", nil
	}
	why = "no list and no rule is about it"
	own := serve.rulesFor(client, serve.rulesAbout(client, when, trusted))
	for _, rules := range present(serve.profile(profile), own) {
		reachesOthers := c.Tools.reachesOthers(&item)
		allowed, key := rules.decide(&item, reachesOthers)
		switch {
		case !allowed && key != "":
			return false, c.placeOf(key) + " denies it", nil
		case !allowed && reachesOthers:
			return false, "it reaches what may be hidden, so a client with lists or rules needs its exact name in an allow list", nil
		case !allowed:
			return false, "it is not among the items that are allowed to the client, first by " + c.placeOf(rules.allow[0].key), nil
		case key != "":
			why = c.placeOf(key) + " allows it"
		}
	}
	if rule, needed := own.demand(&item); needed {
		why += "; each call needs an approval: " + c.placeOf(rule.key)
	}
	return true, why, nil
}

// placeOf returns a key with its file and line, if the configuration was read from a file.
func (c *Config) placeOf(key string) string {
	n := c.find(key)
	if n == nil {
		return key
	}
	in := c.source.Of(n)
	line, _ := in.Position(n.At)
	return fmt.Sprintf("%s (%s:%d)", key, in.Name, line)
}
