// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// used is what one model was used for.
type used struct {
	model     string
	exchanges int
	usage     canister.Usage
}

// others stands for the models of summaries and of tools' own exchanges, whose names the
// conversation does not keep.
const others = "summaries, tools"

// usedBy returns the use of each model in a conversation, in the order of first use.
func usedBy(all []canister.Canister) []used {
	var list []used
	add := func(model string, exchanges int, usage canister.Usage) {
		at := slices.IndexFunc(list, func(u used) bool { return u.model == model })
		if at < 0 {
			at, list = len(list), append(list, used{model: model})
		}
		list[at].exchanges += exchanges
		list[at].usage = list[at].usage.Add(usage)
	}
	for _, entry := range all {
		if said, ok := entry.(canister.Assistant); ok {
			var usage canister.Usage
			if said.Usage != nil {
				usage = *said.Usage
			}
			add(cmp.Or(said.Model, "unnamed model"), 1, usage)
		}
		var sampled struct { // see docs/canisters.md
			Exchanges int `json:"exchanges"`
			canister.Usage
		}
		if text, ok := entry.Header().Metadata[notes.SampledKey]; ok && json.Unmarshal(text, &sampled) == nil && sampled.Exchanges > 0 {
			add(others, sampled.Exchanges, sampled.Usage)
		}
	}
	return list
}

// cost prints the tokens of the conversation, their price, and what is left of the
// budget.
func (c *Chat) cost(ctx context.Context, _ string) error {
	all, err := c.entries(ctx)
	if err != nil {
		return err
	}
	list := usedBy(all)
	if len(list) == 0 {
		c.faint("The model has not been asked yet.")
	} else {
		c.Screen.Print(c.costTable(list))
	}
	return c.printBudget(ctx)
}

// costTable renders the use of each model, with its cost if there are prices.
func (c *Chat) costTable(list []used) string {
	policy := c.Assembly.Options.Budget
	priced := policy != nil && len(policy.Prices) > 0
	rows := [][]string{{"MODEL", "ASKED", "INPUT", "CACHED", "OUTPUT"}}
	if priced {
		rows[0] = append(rows[0], strings.TrimSpace("COST "+policy.Currency))
	}
	for _, u := range list {
		row := []string{display.Line(u.model), strconv.Itoa(u.exchanges), tokens(u.usage.Input), tokens(u.usage.Cached), tokens(u.usage.Output)}
		if priced {
			row = append(row, c.priceOf(u))
		}
		rows = append(rows, row)
	}
	return terminal.Table(rows, func(row, _ int, cell string) string {
		if row == 0 {
			return c.Screen.Results.Faint(cell)
		}
		return cell
	})
}

// priceOf returns what the use of a model cost. A server may report a name with a date,
// such as gpt-5-mini-2025-08-07; the price is then that of the name before it.
func (c *Chat) priceOf(u used) string {
	prices := c.Assembly.Options.Budget.Prices
	price, known := prices[u.model]
	best := ""
	for name := range prices {
		if !known && strings.HasPrefix(u.model, name+"-") && len(name) > len(best) {
			best = name
		}
	}
	if best != "" {
		price, known = prices[best], true
	}
	if !known {
		return "no price"
	}
	return price.Cost(u.usage).String()
}

// tokens formats a number with separators.
func tokens(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// printBudget prints the rest of each cap.
func (c *Chat) printBudget(ctx context.Context) error {
	policy := c.Assembly.Options.Budget
	if policy == nil {
		c.faint("There is no budget ([budgets] of the configuration).")
		return nil
	}
	identity, err := agenttool.OwnerOf(invoker.WithTrusted(ctx, c.Assembly.Trusted...), c.Assembly.Options.Identity)
	if err != nil {
		return err
	}
	standings, err := policy.Standings(ctx, budget.Who{Conversation: c.Session.Conversation().ID(), Identity: identity}, time.Now())
	if err != nil {
		return err
	}
	for _, s := range standings {
		c.Screen.Print(standing(s, policy.Currency) + "\n")
	}
	return nil
}

// standing renders the rest of a cap.
func standing(s budget.Standing, currency string) string {
	var parts []string
	if limit := s.Cap.Tokens; limit > 0 {
		left := limit - budget.Sum(s.Spent.Tokens, s.Reserved.Tokens)
		parts = append(parts, fmt.Sprintf("%s of %s tokens", tokens(max(left, 0)), tokens(limit)))
	}
	if limit := s.Cap.Money; limit > 0 {
		left := limit - budget.Money(budget.Sum(int64(s.Spent.Money), int64(s.Reserved.Money)))
		parts = append(parts, fmt.Sprintf("%s of %s %s", max(left, 0), limit, currency))
	}
	if limit := s.Cap.Time; limit > 0 {
		left := limit - time.Duration(budget.Sum(int64(s.Spent.Time), int64(s.Reserved.Time)))
		parts = append(parts, fmt.Sprintf("%s of %s", max(left, 0).Round(time.Second), limit))
	}
	scope := map[budget.Scope]string{budget.Conversation: "this conversation", budget.Identity: "you", budget.Roster: "all together"}[s.Cap.Scope]
	window := ""
	if s.Cap.Window != budget.Lifetime {
		window = " this " + string(s.Cap.Window)
	}
	return fmt.Sprintf("left for %s%s: %s", cmp.Or(scope, string(s.Cap.Scope)), window, strings.Join(parts, ", "))
}
