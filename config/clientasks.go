// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/consort-go/consort/config/internal/settings"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// askRule is a rule whose tools need an approval for each call.
type askRule struct {
	keyedRule
	demand clientcalls.Demand
}

// asksOf returns the rule that the key approve of a client stands for.
func (s *Serve) asksOf(client string) []askRule {
	i := slices.IndexFunc(s.Clients, func(c Client) bool { return c.Name == client && client != "" && c.Approve == ActionAsk })
	if i < 0 {
		return nil
	}
	return []askRule{{keyedRule: keyedRule{
		key:   fmt.Sprintf("serve.clients[%d].approve", i),
		fits:  func(item *ensemble.Item) bool { return item.Kind == ensemble.ToolItem && !item.Hints.ReadOnly },
		names: func(*ensemble.Item) bool { return false },
	}}}
}

// demand returns the rule by which the calls of a tool need an approval, if there is one.
func (c *clientRules) demand(item *ensemble.Item) (rule askRule, needed bool) {
	if c == nil {
		return rule, false
	}
	i := slices.IndexFunc(c.ask, func(rule askRule) bool { return rule.fits(item) })
	if i < 0 {
		return rule, false
	}
	return c.ask[i], true
}

// Asks reports whether calls of some clients need an approval.
func (s *Serve) Asks() bool {
	return slices.ContainsFunc(s.Clients, func(c Client) bool { return c.Approve == ActionAsk }) ||
		slices.ContainsFunc(s.Rules, func(rule ClientRule) bool { return rule.Action == ActionAsk })
}

// invokeFunc returns the function for the options of a server that makes the calls of
// clients; nil if none needs an approval or has a budget.
func (a *Assembly) invokeFunc(s *Serve) (func(context.Context, *mcpserver.ToolCall) (invoker.Output, error), error) {
	if !s.Asks() && len(s.Budgets) == 0 {
		return nil, nil
	}
	rulesOf, err := s.rulesOf()
	if err != nil {
		return nil, err
	}
	rules := &clientcalls.Rules{
		Demand: func(ctx context.Context, item ensemble.Item) (clientcalls.Demand, bool) {
			rule, needed := rulesOf(ctx, access.NameFrom(ctx)).demand(&item)
			return rule.demand, needed
		},
		Store: a.History, Address: a.addressOf, Logger: a.Logger, Ledger: a.clientLedger,
		Budgets: func(ctx context.Context) []clientcalls.Budget { return s.budgetsOf(access.NameFrom(ctx)) },
	}
	return func(ctx context.Context, call *mcpserver.ToolCall) (invoker.Output, error) {
		return a.shared.gate.Invoke(ctx, rules, call)
	}, nil
}

// addressOf identifies the server of an ensemble of this assembly, or of the one before,
// whose ensembles are offered until the new ones are connected.
func (a *Assembly) addressOf(e *ensemble.Ensemble) (address string, ok bool) {
	for _, n := range slices.Concat(a.servers, a.former) {
		if n.made != e {
			continue
		}
		place := ""
		if s, ok := n.server.(*Server); ok && s.Transport == Stdio && !filepath.IsAbs(s.Directory.Reveal()) {
			place, _ = os.Getwd() // without one, the settings decide
		}
		return settings.Text(n.server, place), true
	}
	return "", false
}
