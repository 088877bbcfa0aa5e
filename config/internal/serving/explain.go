// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/ensemble"
)

// Explain reports whether a client may use an item, and why: the element of a list, or the
// rule. placeOf describes the place of a key. See config.Config.Explain.
func Explain(options *serve.Options, tools Tools, client string, trusted map[string]any, item ensemble.Item, placeOf func(key string) string) (allowed bool, why string, err error) {
	s := offer{options}
	if client != "" && s.OIDC == nil && !slices.ContainsFunc(s.Clients, func(one serve.Client) bool { return one.Name == client }) {
		return false, "", fmt.Errorf("no client is named %q%s", client, s.clientNames())
	}
	profile := s.profileOf(client)
	when, err := s.conditions()
	if err == nil && trusted == nil {
		trusted, err = s.trustedOf(client)
	}
	if err != nil {
		return false, "", err
	}
	if tools.withholds(&item) {
		return false, "it is only for the model; clients have find_tools and call_tool at /mcp/search", nil
	}
	why = "no list and no rule is about it"
	own := s.rulesFor(client, s.rulesAbout(client, when, trusted))
	for _, rules := range present(s.profile(profile), own) {
		reachesOthers := tools.ReachOthers(&item)
		may, key := rules.decide(&item, reachesOthers)
		switch {
		case !may && key != "":
			return false, placeOf(key) + " denies it", nil
		case !may && reachesOthers:
			return false, "it reaches what may be hidden, so a client with lists or rules needs its exact name in an allow list", nil
		case !may:
			return false, "it is not among the items that are allowed to the client, first by " + placeOf(rules.allow[0].key), nil
		case key != "":
			why = placeOf(key) + " allows it"
		}
	}
	if rule, needed := own.demand(&item); needed {
		why += "; each call needs an approval: " + placeOf(rule.key)
	}
	return true, why, nil
}
