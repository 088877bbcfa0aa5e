// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/serve"

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
func (s offer) asksOf(client string) []askRule {
	i := slices.IndexFunc(s.Clients, func(c serve.Client) bool { return c.Name == client && client != "" && c.Approve })
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

// invokeFunc returns the function for the options of a server that makes the calls of
// clients; nil if none needs an approval or has a budget.
func (s offer) invokeFunc(with *Options) (func(context.Context, *mcpserver.ToolCall) (invoker.Output, error), error) {
	if !s.Asks() && len(s.Budgets) == 0 {
		return nil, nil
	}
	rulesOf, err := s.rulesOf()
	if err != nil {
		return nil, err
	}
	rules := with.Calls
	rules.Demand = func(ctx context.Context, item ensemble.Item) (clientcalls.Demand, bool) {
		rule, needed := rulesOf(ctx, access.NameFrom(ctx)).demand(&item)
		return rule.demand, needed
	}
	rules.Budgets = func(ctx context.Context) []clientcalls.Budget { return s.budgetsOf(access.NameFrom(ctx)) }
	return func(ctx context.Context, call *mcpserver.ToolCall) (invoker.Output, error) {
		return with.Gate.Invoke(ctx, &rules, call)
	}, nil
}
