// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/internal/condition"
	"github.com/consort-go/consort/invoker"
)

// conditionText is the text of a condition.
func conditionText(to *string) grammar.Kind {
	return grammar.Kind{Name: "a string", Read: func(r *grammar.Reader, n *document.Node) {
		grammar.Text(to).Read(r, n)
		if *to == "" {
			return
		}
		if _, err := condition.Compile(*to); err != nil {
			r.Wrong(n, "%s", err)
		}
	}}
}

// conditions returns the conditions of the rules, nil for a rule without one.
func (s offer) conditions() ([]*condition.Condition, error) {
	all := make([]*condition.Condition, len(s.Rules))
	for i, rule := range s.Rules {
		if rule.When == "" {
			continue
		}
		var err error
		if all[i], err = condition.Compile(rule.When); err != nil {
			return nil, grammar.About(fmt.Sprintf("serve.rules[%d].when", i), err)
		}
	}
	return all, nil
}

// hasConditionAbout reports whether a rule with a condition is about a client.
func (s offer) hasConditionAbout(client string) bool {
	return slices.ContainsFunc(s.Rules, func(rule serve.Rule) bool { return rule.When != "" && isAbout(&rule, client) })
}

// The bytes of [offer.rulesAbout].
const (
	notAbout   byte = iota
	applies         // with its conditions about items
	allowsNone      // allows, but not this client: all else is hidden nevertheless
)

// rulesAbout returns which rules are about a client with trusted values: a byte for each. If
// a condition cannot be evaluated, a rule that allows does not hold, and each other does.
func (s offer) rulesAbout(client string, when []*condition.Condition, values map[string]any) string {
	found := make([]byte, len(s.Rules))
	for i := range s.Rules {
		rule := &s.Rules[i]
		if !isAbout(rule, client) {
			continue
		}
		holds, err := true, error(nil)
		if when[i] != nil {
			holds, err = when[i].Holds(values)
		}
		switch allows := rule.Action == serve.Allow; {
		case allows && (!holds || err != nil):
			found[i] = allowsNone
		case holds || err != nil:
			found[i] = applies
		}
	}
	return string(found)
}

// rulesOf returns the function that returns the rules about a client with the trusted values
// of a context.
func (s offer) rulesOf() (func(ctx context.Context, client string) *clientRules, error) {
	when, err := s.conditions()
	if err != nil {
		return nil, err
	}
	known := map[string]*clientRules{}
	for _, client := range append([]serve.Client{{}}, s.Clients...) {
		if !s.hasConditionAbout(client.Name) {
			known[client.Name] = s.rulesFor(client.Name, s.rulesAbout(client.Name, when, nil))
		}
	}
	var recent recentRules
	return func(ctx context.Context, client string) *clientRules {
		if rules, ok := known[client]; ok {
			return rules
		}
		return s.rulesFor(client, recent.about(ctx, s, client, when))
	}, nil
}

// recentRules remembers which rules are about clients with trusted values: conditions are slow
// compared to a call.
type recentRules struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]string
}

// maxRecent bounds how many are remembered.
const maxRecent = 4096

// about returns what [offer.rulesAbout] returns for a client with the trusted values of a
// context.
func (r *recentRules) about(ctx context.Context, s offer, client string, when []*condition.Condition) string {
	values := invoker.TrustedFrom(ctx)
	text := strconv.AppendQuote(make([]byte, 0, 256), client)
	for _, v := range values {
		revealed, err := v.Reveal()
		if err != nil {
			return s.rulesAbout(client, when, trustedTexts(values))
		}
		text = strconv.AppendQuote(text, v.Name())
		text = append(strconv.AppendInt(text, int64(len(revealed)), 10), ':')
		text = append(text, revealed...)
	}
	key := sha256.Sum256(text) // values can be secret
	r.mu.Lock()
	about, ok := r.known[key]
	r.mu.Unlock()
	if ok {
		return about
	}
	about = s.rulesAbout(client, when, trustedTexts(values))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRecent {
		r.known = map[[sha256.Size]byte]string{}
	}
	r.known[key] = about
	return about
}

// clientWithLists returns the name of a client of the configuration; empty for others.
func (s offer) clientWithLists(name string) string {
	if slices.ContainsFunc(s.Clients, func(c serve.Client) bool { return c.Name == name }) {
		return name
	}
	return ""
}

// trustedTexts returns values by name, as conditions need them. A value that is not JSON is
// missing.
func trustedTexts(values []invoker.Value) map[string]any {
	found := make(map[string]any, len(values))
	for _, v := range values {
		text, err := v.Reveal()
		var decoded any
		if err == nil && json.Unmarshal(text, &decoded) == nil {
			found[v.Name()] = decoded
		}
	}
	return found
}

// trustedOf returns the values of a client of the configuration, as conditions need them.
func (s offer) trustedOf(client string) (map[string]any, error) {
	i := slices.IndexFunc(s.Clients, func(c serve.Client) bool { return c.Name == client && client != "" })
	if i < 0 {
		return nil, nil
	}
	values, err := grammar.TrustedValues(fmt.Sprintf("serve.clients[%d].trusted", i), s.Clients[i].Trusted)
	return trustedTexts(values), err
}
