// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/config/internal/conditions"
	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/condition"
	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/urirules"
)

func clientRuleFields(rule *serve.Rule) []grammar.Field {
	return []grammar.Field{
		grammar.Key("action", grammar.Choice(&rule.Action, serve.Allow, serve.Deny, serve.Ask)),
		grammar.Key("who", grammar.Text(&rule.Who)),
		grammar.Key("within", grammar.Duration(&rule.Within)),
		grammar.Key("clients", grammar.Each(&rule.Clients, grammar.Text)),
		grammar.Key("when", conditionText(&rule.When)),
		grammar.Key("ensembles", grammar.Each(&rule.Ensembles, grammar.Text)),
		grammar.Key("tools", grammar.Each(&rule.Tools, grammar.Text)),
		grammar.Key("prompts", grammar.Each(&rule.Prompts, grammar.Text)),
		grammar.Key("resources", grammar.Each(&rule.Resources, grammar.Text)),
		grammar.Key("read_only", grammar.Optional(&rule.ReadOnly, grammar.Boolean)),
		grammar.Key("idempotent", grammar.Optional(&rule.Idempotent, grammar.Boolean)),
		grammar.Key("destructive", grammar.Optional(&rule.Destructive, grammar.Boolean)),
		grammar.Key("open_world", grammar.Optional(&rule.OpenWorld, grammar.Boolean)),
	}
}

func checkClientRule(rule *serve.Rule, r *grammar.Reader, n *document.Node) {
	if n.Member("action") == nil {
		r.Missing(n, "action", `missing: expected "allow", "deny" or "ask"`)
	}
	for _, key := range []string{"who", "within"} {
		if stray := n.Member(key); stray != nil && rule.Action != serve.Ask && rule.Action != "" {
			r.WrongKey(stray, `only for a rule with action = "ask"`)
		}
	}
	r.EmptyLists(n, "clients", "ensembles", "tools", "prompts", "resources")
	hints := rule.ReadOnly != nil || rule.Idempotent != nil || rule.Destructive != nil || rule.OpenWorld != nil
	for _, key := range []string{"prompts", "resources"} {
		switch stray := n.Member(key); {
		case stray != nil && rule.Action == serve.Ask:
			r.WrongKey(stray, "a rule that asks is about tools, which alone are called")
		case stray != nil && hints:
			r.WrongKey(stray, "a rule with a hint is about tools, which alone have hints; make it two rules")
		}
	}
}

// isAbout reports whether the rule is about a client.
func isAbout(rule *serve.Rule, client string) bool { return conditions.Matches(rule.Clients, client) }

// fits reports whether an item meets the conditions. The globs for resources also match other
// spellings.
func fits(rule *serve.Rule, resources []string, item *ensemble.Item) bool {
	hinted := conditions.Conditions{
		Ensembles: rule.Ensembles, Tools: rule.Tools,
		ReadOnly: rule.ReadOnly, Idempotent: rule.Idempotent, Destructive: rule.Destructive, OpenWorld: rule.OpenWorld,
	}
	if hinted.HasHints() || len(rule.Tools)+len(rule.Prompts)+len(rule.Resources) == 0 {
		return (item.Kind == ensemble.ToolItem || !hinted.HasHints()) && hinted.Fit(item.Ensemble, item.Name, item.Hints)
	}
	globs := map[ensemble.ItemKind][]string{
		ensemble.ToolItem: rule.Tools, ensemble.PromptItem: rule.Prompts, ensemble.ResourceItem: resources,
	}[item.Kind]
	if len(globs) == 0 || !conditions.Matches(rule.Ensembles, item.Ensemble) {
		return false
	}
	if item.Kind == ensemble.ResourceItem {
		return urirules.Match(globs, item.Name, rule.Action == serve.Deny)
	}
	return conditions.Matches(globs, item.Name)
}

// clientRules are the lists and the rules about one client.
type clientRules struct {
	deny, allow []keyedRule
	ask         []askRule
}

// keyedRule is an element of a list, or a rule, with its key.
type keyedRule struct {
	key  string
	fits func(*ensemble.Item) bool
	// names reports whether the element names a tool in full, without a glob.
	names func(tool *ensemble.Item) bool
}

// rulesFor returns the rules about a client, its lists first; nil without any. about says
// which of the rules are.
func (s offer) rulesFor(client, about string) *clientRules {
	all := &clientRules{}
	for i := range s.Clients {
		if c := &s.Clients[i]; c.Name == client && client != "" && len(all.allow)+len(all.deny) == 0 {
			all.deny = listRules(fmt.Sprintf("serve.clients[%d].deny", i), c.Deny, true)
			all.allow = listRules(fmt.Sprintf("serve.clients[%d].allow", i), c.Allow, false)
		}
	}
	for i := range s.Rules {
		rule := &s.Rules[i]
		switch about[i] {
		case notAbout:
			continue
		case allowsNone:
			never := func(*ensemble.Item) bool { return false }
			all.allow = append(all.allow, keyedRule{key: fmt.Sprintf("serve.rules[%d]", i), fits: never, names: never})
			continue
		}
		resources := urirules.Globs(rule.Resources, rule.Action == serve.Deny)
		keyed := keyedRule{
			key: fmt.Sprintf("serve.rules[%d]", i), fits: func(item *ensemble.Item) bool { return fits(rule, resources, item) },
			names: func(tool *ensemble.Item) bool {
				return fits(rule, resources, tool) && slices.Contains(rule.Tools, tool.Name)
			},
		}
		switch rule.Action {
		case serve.Deny:
			all.deny = append(all.deny, keyed)
		case serve.Ask:
			all.ask = append(all.ask, askRule{keyed, clientcalls.Demand{Who: rule.Who, Within: rule.Within}})
		default:
			all.allow = append(all.allow, keyed)
		}
	}
	all.ask = append(all.ask, s.asksOf(client)...)
	if len(all.deny)+len(all.allow)+len(all.ask) == 0 {
		return nil
	}
	return all
}

// listRules returns the elements of an allow or deny list. An element is a glob for the
// name of an ensemble, for the full name of a tool or prompt, or for a URI. A deny list
// also matches a full name that ensemble.NameFor shortens or encodes, before that.
func listRules(key string, list []string, deny bool) []keyedRule {
	rules := make([]keyedRule, len(list))
	for i, pattern := range list {
		resources := urirules.Globs([]string{pattern}, deny)
		rules[i] = keyedRule{
			key: fmt.Sprintf("%s[%d]", key, i),
			fits: func(item *ensemble.Item) bool {
				switch {
				case item.Ensemble != "" && glob.Match(pattern, item.Ensemble):
					return true
				case item.Kind == ensemble.ResourceItem:
					return urirules.Match(resources, item.Name, deny)
				case item.Ensemble == "":
					return glob.Match(pattern, item.Name)
				}
				return glob.Match(pattern, fullName(item)) || deny && glob.Match(pattern, item.Ensemble+"__"+item.Name)
			},
			names: func(tool *ensemble.Item) bool { return pattern == fullName(tool) },
		}
	}
	return rules
}

// fullName returns the name of a tool or a prompt for clients.
func fullName(item *ensemble.Item) string {
	if item.Ensemble == "" {
		return item.Name
	}
	return ensemble.NameFor(item.Ensemble, item.Name)
}

// decide reports whether the client may use an item, and the rule that says so; empty if
// none does. If the item reaches others, a client with rules needs its exact name.
func (c *clientRules) decide(item *ensemble.Item, reachesOthers bool) (allowed bool, key string) {
	if c == nil {
		return true, ""
	}
	fits := func(rule keyedRule) bool { return rule.fits(item) }
	if i := slices.IndexFunc(c.deny, fits); i >= 0 {
		return false, c.deny[i].key
	}
	if reachesOthers {
		fits = func(rule keyedRule) bool { return rule.names(item) }
		if i := slices.IndexFunc(c.ask, func(rule askRule) bool { return fits(rule.keyedRule) }); i >= 0 && len(c.allow) == 0 {
			return true, c.ask[i].key
		}
	} else if len(c.allow) == 0 || item.Variant {
		return true, ""
	}
	if i := slices.IndexFunc(c.allow, fits); i >= 0 {
		return true, c.allow[i].key
	}
	return false, ""
}

// chooser finds the selections of clients. Clients with the same lists and rules share one.
type chooser struct {
	serve  offer
	roster *ensemble.Roster
	tools  Tools
	when   []*condition.Condition // of the rules; nil for a rule without one
	known  map[string]string      // which rules are about the clients of the configuration, by name; empty if values count
	recent recentRules            // and about others

	mu     sync.Mutex
	chosen map[place]map[string]*ensemble.Selection // and by the rules that apply
}

// place is a part of what decides about a client's selection.
type place struct {
	client  string // empty unless the client has lists of its own
	profile string
}

// maxChosen bounds the selections that are kept for each place.
const maxChosen = 1 << 10

// of returns the selection of a client in a profile, or outside of profiles if that is
// empty. It is nil if the client may use everything.
func (c *chooser) of(ctx context.Context, client, profile string) *ensemble.Selection {
	at := place{client, profile}
	about, known := c.known[client]
	if !known {
		about = c.recent.about(ctx, c.serve, client, c.when)
		at.client = c.serve.clientWithLists(client)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	selection, known := c.chosen[at][about]
	if known {
		return selection
	}
	if rules := present(c.serve.profile(profile), c.serve.rulesFor(at.client, about)); len(rules) > 0 || c.tools.Withheld != nil {
		selection = c.roster.Select(func(item ensemble.Item) bool {
			return !c.tools.withholds(&item) && allow(rules, &item, c.tools.ReachOthers(&item))
		})
	}
	if c.chosen[at] == nil || len(c.chosen[at]) >= maxChosen {
		c.chosen[at] = make(map[string]*ensemble.Selection)
	}
	c.chosen[at][about] = selection
	return selection
}

// isSelective reports whether a client may not use everything outside of profiles.
func (s offer) isSelective(tools Tools) bool {
	return tools.Withheld != nil || len(s.Rules) > 0 || slices.ContainsFunc(s.Clients, func(c serve.Client) bool {
		return c.Name != "" && (len(c.Allow)+len(c.Deny) > 0 || c.Profile != "" || c.Approve)
	})
}

// selections returns the functions for the options of a server that choose the selection
// of a client, and of a client in a profile. The first is nil without rules.
func (s offer) selections(roster *ensemble.Roster, tools Tools) (choose func(context.Context) *ensemble.Selection, profile profileFunc, err error) {
	c := &chooser{serve: s, roster: roster, tools: tools, known: map[string]string{}, chosen: map[place]map[string]*ensemble.Selection{}}
	if c.when, err = s.conditions(); err != nil {
		return nil, nil, err
	}
	for _, client := range append([]serve.Client{{}}, s.Clients...) {
		if !s.hasConditionAbout(client.Name) {
			c.known[client.Name] = s.rulesAbout(client.Name, c.when, nil)
		}
	}
	if s.isSelective(tools) {
		choose = func(ctx context.Context) *ensemble.Selection {
			client := access.NameFrom(ctx)
			return c.of(ctx, client, s.profileOf(client))
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(s.Profiles, func(p serve.Profile) bool { return p.Name == name })
	}
	hasSearch := has(searchProfile)
	profile = func(ctx context.Context, name string) (*ensemble.Selection, bool) {
		client := access.NameFrom(ctx)
		switch own := s.profileOf(client); {
		case name == searchProfile && !hasSearch:
			return c.of(ctx, client, own), own == ""
		case own != "" && own != name || !has(name):
			return nil, false
		}
		return c.of(ctx, client, name), true
	}
	return choose, profile, nil
}

// searchProfile is the name of a profile that exists without configuration: the whole offer of
// a client, whose tools it finds by words. A profile of the configuration may replace it.
const searchProfile = "search"

// finds reports whether a client finds tools by words, in the profile of its request.
func (s offer) finds(ctx context.Context, profile string) bool {
	if profile == "" {
		profile = s.profileOf(access.NameFrom(ctx))
	}
	for _, one := range s.Profiles {
		if one.Name == profile {
			return one.Search
		}
	}
	return s.Search || profile == searchProfile
}

// profileOf returns the profile that a client always has; empty without one.
func (s offer) profileOf(client string) string {
	for _, one := range s.Clients {
		if client != "" && one.Name == client {
			return one.Profile
		}
	}
	return ""
}

// profileFunc is [mcpserver.Options].Profile.
type profileFunc = func(ctx context.Context, name string) (*ensemble.Selection, bool)

// allow reports whether all rules allow an item.
func allow(rules []*clientRules, item *ensemble.Item, reachesOthers bool) bool {
	return !slices.ContainsFunc(rules, func(c *clientRules) bool {
		allowed, _ := c.decide(item, reachesOthers)
		return !allowed
	})
}

// present returns the rules that are not nil.
func present(rules ...*clientRules) []*clientRules {
	return slices.DeleteFunc(rules, func(c *clientRules) bool { return c == nil })
}

// profile returns the lists of a profile; nil without a name. An unknown profile, which
// only a configuration made by a program can have, denies everything.
func (s offer) profile(name string) *clientRules {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(s.Profiles, func(p serve.Profile) bool { return p.Name == name })
	if i < 0 {
		return &clientRules{deny: listRules("serve.profiles", []string{"*"}, true)}
	}
	key := fmt.Sprintf("serve.profiles[%d].", i)
	return &clientRules{deny: listRules(key+"deny", s.Profiles[i].Deny, true), allow: listRules(key+"allow", s.Profiles[i].Allow, false)}
}

func profileFields(p *serve.Profile) []grammar.Field {
	return []grammar.Field{grammar.Key("name", grammar.Text(&p.Name)), grammar.Key("allow", grammar.Each(&p.Allow, grammar.Text)), grammar.Key("deny", grammar.Each(&p.Deny, grammar.Text)), grammar.Key("search", grammar.Boolean(&p.Search))}
}

func checkProfile(p *serve.Profile, r *grammar.Reader, n *document.Node) {
	r.EmptyLists(n, "allow", "deny")
	switch name := n.Member("name"); {
	case name == nil:
		r.Missing(n, "name", `missing: expected the end of its path, such as name = "coding" for /mcp/coding`)
	case p.Name != "" && strings.Trim(p.Name, profileName) != "":
		r.Wrong(name, "expected letters, digits, - and _, because the name is part of a URL")
	}
}

// profileName are the characters of the name of a profile.
const profileName = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// checkProfiles reports names that two profiles share, and names without a profile.
func (s offer) checkProfiles(r *grammar.Reader, n *document.Node) {
	profiles, _ := n.Member("profiles").AsList()
	clients, _ := n.Member("clients").AsList()
	if len(profiles) != len(s.Profiles) || len(clients) != len(s.Clients) {
		return
	}
	has := func(all []serve.Profile, name string) bool {
		return slices.ContainsFunc(all, func(p serve.Profile) bool { return p.Name == name })
	}
	for i, p := range s.Profiles {
		if name := profiles[i].Member("name"); name != nil && p.Name != "" && has(s.Profiles[:i], p.Name) {
			r.Wrong(name, "another profile already has this name")
		}
	}
	for i, c := range s.Clients {
		switch at := clients[i].Member("profile"); {
		case at == nil || c.Profile == "":
		case c.Name == "":
			r.WrongKey(at, `only for a client with a name; set name, such as name = "ada"`)
		case !has(s.Profiles, c.Profile):
			r.Wrong(at, "no profile has this name; add it to [[serve.profiles]]")
		}
	}
}

// checkRules validates the lists and rules of clients as a whole.
func (s offer) checkRules(r *grammar.Reader, n *document.Node) {
	clients, _ := n.Member("clients").AsList()
	if len(clients) != len(s.Clients) {
		return
	}
	for i, one := range s.Clients {
		for _, key := range []string{"allow", "deny", "approve", "console"} {
			if list := clients[i].Member(key); list != nil && one.Name == "" {
				r.WrongKey(list, `only for a client with a name; set name, such as name = "ada"`)
			}
		}
		for j, other := range s.Clients[:i] {
			if one.Name != "" && one.Name == other.Name && !mayDoTheSame(&one, &other) {
				r.Wrong(clients[i].Member("name"), "serve.clients[%d] has this name and other lists, another profile, approve or console: write the same in both, or use another name", j)
				break
			}
		}
	}
	rules, _ := n.Member("rules").AsList()
	for i, rule := range s.Rules {
		if i >= len(rules) {
			return
		}
		s.knownClients(r, rules[i].Member("clients"), rule.Clients)
	}
	budgets, _ := n.Member("budgets").AsList()
	for i, b := range s.Budgets {
		if i < len(budgets) {
			s.knownClients(r, budgets[i].Member("clients"), b.Clients)
		}
	}
}

// knownClients reports patterns in a list that match no client. An issuer can give clients any name, and
// "*" matches clients without one too.
func (s offer) knownClients(r *grammar.Reader, list *document.Node, patterns []string) {
	elements, _ := list.AsList()
	for i, pattern := range patterns {
		if i < len(elements) && s.OIDC == nil && !glob.Match(pattern, "") && !slices.ContainsFunc(s.Clients, func(c serve.Client) bool { return c.Name != "" && glob.Match(pattern, c.Name) }) {
			r.Wrong(elements[i], "no client has such a name%s", s.clientNames())
		}
	}
}

func mayDoTheSame(c *serve.Client, other *serve.Client) bool {
	return slices.Equal(c.Allow, other.Allow) && slices.Equal(c.Deny, other.Deny) && c.Profile == other.Profile && c.Approve == other.Approve && c.Console == other.Console
}

// clientNames lists the names of the clients for an error.
func (s offer) clientNames() string {
	var names []string
	for _, c := range s.Clients {
		if c.Name != "" && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ": give the clients names"
	}
	return "; there are " + strings.Join(names, ", ")
}
