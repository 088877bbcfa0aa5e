// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/config/internal/storeledger"
	"github.com/consort-go/consort/converse/budget"
)

// budgetFields returns the fields of the budgets table.
func budgetFields(p *budget.Policy) []field {
	return []field{
		{"caps", each(&p.Caps, func(c *budget.Cap) value { return tableOf(capFields(c), checkCap) })},
		{"prices", byName(&p.Prices, func(p *budget.Price) value { return tableOf(priceFields(p), checkPrice) }, plaintext.ModelName)},
		{"currency", text(&p.Currency)},
		{"roster", text(&p.Roster)},
		{"answer_tokens", integer(&p.Answer, 16)},
		{"step", duration(&p.Step)},
	}
}

func capFields(c *budget.Cap) []field {
	return []field{
		{"scope", choice(&c.Scope, budget.Conversation, budget.Identity, budget.Roster)},
		{"window", choice(&c.Window, budget.Hour, budget.Day, budget.Month)},
		{"tokens", integer(&c.Tokens, 1)},
		{"money", money(&c.Money)},
		{"time", duration(&c.Time)},
	}
}

func checkCap(r *reader, n *document.Node) {
	if n.Member("scope") == nil {
		r.missing(n, "scope", `missing: expected "conversation", "identity" or "roster"`)
	}
	if n.Member("tokens") == nil && n.Member("money") == nil && n.Member("time") == nil {
		r.missing(n, "tokens", "missing: expected a limit of tokens, money or time")
	}
}

func priceFields(p *budget.Price) []field {
	return []field{{"input", money(&p.Input)}, {"cached", money(&p.Cached)}, {"cache_written", money(&p.CacheWritten)}, {"output", money(&p.Output)}}
}

func checkPrice(r *reader, n *document.Node) {
	for _, key := range []string{"input", "output"} {
		if n.Member(key) == nil {
			r.missing(n, key, `missing: expected the price of a million tokens, such as %s = "0.25"`, key)
		}
	}
}

// money is an amount in the currency.
func money(to *budget.Money) value {
	const kind = `an amount such as "2.50"`
	return value{kind: "an amount", read: func(r *reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		amount, err := budget.ParseMoney(s)
		if err != nil {
			r.wrong(n, "expected %s: digits, with up to six more after a decimal point", kind)
			return
		}
		*to = amount
	}}
}

// checkBudgets validates the table as a whole. model is the model of the conversations, or nil
// if it is not known.
func checkBudgets(p *budget.Policy, r *reader, n *document.Node, model *Model) {
	caps, _ := n.Member("caps").AsList()
	if len(caps) == 0 {
		r.missing(n, "caps", "missing: expected at least one cap, such as caps = [{scope = \"conversation\", tokens = 1000000}]")
	}
	paid, seen := false, map[string]bool{}
	for i, at := range caps {
		for _, unit := range []string{"tokens", "money", "time"} {
			limit, c := at.Member(unit), p.Caps[i]
			account := fmt.Sprintf("%s of %s in %s", unit, c.Scope, c.Window)
			if limit != nil && c.Scope != "" && seen[account] {
				r.wrongKey(limit, "another cap limits the %s of the same scope and window already", unit)
			}
			seen[account] = seen[account] || limit != nil
		}
		money := at.Member("money")
		if paid = paid || money != nil; money != nil && n.Member("currency") == nil {
			r.wrongKey(money, `a cap of money needs a currency; set budgets.currency, such as currency = "USD"`)
		}
	}
	if model == nil || !paid {
		return
	}
	for _, one := range model.models() {
		if _, priced := p.Prices[one.Name.Reveal()]; !priced {
			table := "[model]"
			if one != model {
				table = "[[model.fallback]]"
			}
			r.missing(n, "prices", "missing: expected the price of the model of %s, which a cap of money needs", table)
		}
	}
}

// assembleBudgets sets the budget of the conversations.
func (a *Assembly) assembleBudgets(config *Config, o *AssembleOptions) error {
	if config.Budgets == nil {
		return nil
	}
	policy := *config.Budgets
	switch {
	case policy.Ledger != nil:
	case o.Previous != nil && o.Previous.Options.Budget != nil:
		policy.Ledger = o.Previous.Options.Budget.Ledger
	case config.Keeps():
		policy.Ledger = storeledger.New(a.History)
	default:
		policy.Ledger = budget.NewMemory()
	}
	if config.Model != nil {
		for _, m := range config.Model.models() {
			if err := policy.Check(m.Name.Reveal()); err != nil {
				return about("budgets", err)
			}
		}
	}
	a.Options.Budget = &policy
	return nil
}
