// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/config/internal/storeledger"
	"github.com/consort-go/consort/converse/budget"
)

// budgetFields returns the fields of the budgets table.
func budgetFields(p *budget.Policy) []grammar.Field {
	return []grammar.Field{
		grammar.Key("caps", grammar.Each(&p.Caps, func(c *budget.Cap) grammar.Kind { return grammar.Table(capFields(c), checkCap) })),
		grammar.Key("prices", grammar.ByName(&p.Prices, func(p *budget.Price) grammar.Kind { return grammar.Table(priceFields(p), checkPrice) }, plaintext.ModelName)),
		grammar.Key("currency", grammar.Text(&p.Currency)),
		grammar.Key("roster", grammar.Text(&p.Roster)),
		grammar.Key("answer_tokens", grammar.Integer(&p.Answer, 16)),
		grammar.Key("step", grammar.Duration(&p.Step)),
	}
}

func capFields(c *budget.Cap) []grammar.Field {
	return []grammar.Field{
		grammar.Key("scope", grammar.Choice(&c.Scope, budget.Conversation, budget.Identity, budget.Roster)),
		grammar.Key("window", grammar.Choice(&c.Window, budget.Hour, budget.Day, budget.Month)),
		grammar.Key("tokens", grammar.Integer(&c.Tokens, 1)),
		grammar.Key("money", money(&c.Money)),
		grammar.Key("time", grammar.Duration(&c.Time)),
	}
}

func checkCap(r *grammar.Reader, n *document.Node) {
	if n.Member("scope") == nil {
		r.Missing(n, "scope", `missing: expected "conversation", "identity" or "roster"`)
	}
	if n.Member("tokens") == nil && n.Member("money") == nil && n.Member("time") == nil {
		r.Missing(n, "tokens", "missing: expected a limit of tokens, money or time")
	}
	if limit := n.Member("money"); limit != nil && isZero(limit.Value) {
		r.Wrong(limit, "expected an amount above 0")
	}
}

func priceFields(p *budget.Price) []grammar.Field {
	return []grammar.Field{grammar.Key("input", money(&p.Input)), grammar.Key("cached", moneyOrNone(&p.Cached)), grammar.Key("cache_written", moneyOrNone(&p.CacheWritten)), grammar.Key("output", money(&p.Output))}
}

func checkPrice(r *grammar.Reader, n *document.Node) {
	for _, key := range []string{"input", "output"} {
		if n.Member(key) == nil {
			r.Missing(n, key, `missing: expected the price of a million tokens, such as %s = "0.25"`, key)
		}
	}
}

// money is an amount in the currency.
func money(to *budget.Money) grammar.Kind {
	const kind = `an amount such as "2.50"`
	return grammar.Kind{Name: "an amount", Read: func(r *grammar.Reader, n *document.Node) {
		s, ok := n.Value.(string)
		if !ok {
			r.WrongKind(n, kind)
			return
		}
		amount, err := budget.ParseMoney(s)
		if err != nil {
			r.Wrong(n, "expected %s: digits, with up to six more after a decimal point", kind)
			return
		}
		*to = amount
	}}
}

// moneyOrNone is a price. In a [budget.Price] 0 means the price of Input, and a negative one
// nothing, so 0 in the file is stored as -1.
func moneyOrNone(to *budget.Money) grammar.Kind {
	kind := money(to)
	return grammar.Kind{Name: kind.Name, Read: func(r *grammar.Reader, n *document.Node) {
		if kind.Read(r, n); isZero(n.Value) {
			*to = -1
		}
	}}
}

// isZero reports whether a value of the file is an amount of 0.
func isZero(value any) bool {
	text, _ := value.(string)
	amount, err := budget.ParseMoney(text)
	return err == nil && amount == 0
}

// paidModel is a model whose requests the conversations pay for.
type paidModel struct{ name, of string }

// paidModels returns the models that write the answers and the summaries.
func (c *Config) paidModels() []paidModel {
	if c.Model == nil {
		return nil
	}
	models := []paidModel{{c.Model.Name.Reveal(), "[model]"}}
	for _, m := range c.Model.Fallbacks {
		models = append(models, paidModel{m.Name.Reveal(), "[[model.fallback]]"})
	}
	if c.Compaction != nil && c.Compaction.Model.Reveal() != "" {
		models = append(models, paidModel{c.Compaction.Model.Reveal(), "[compaction]"})
	}
	return models
}

// checkBudgets validates the table as a whole.
func (c *Config) checkBudgets(r *grammar.Reader, n *document.Node) {
	p := c.Budgets
	caps, _ := n.Member("caps").AsList()
	if len(caps) == 0 {
		r.Missing(n, "caps", "missing: expected at least one cap, such as caps = [{scope = \"conversation\", tokens = 1000000}]")
	}
	paid, seen := false, map[string]bool{}
	for i, at := range caps {
		for _, unit := range []string{"tokens", "money", "time"} {
			limit, c := at.Member(unit), p.Caps[i]
			account := fmt.Sprintf("%s of %s in %s", unit, c.Scope, c.Window)
			if limit != nil && c.Scope != "" && seen[account] {
				r.WrongKey(limit, "another cap limits the %s of the same scope and window already", unit)
			}
			seen[account] = seen[account] || limit != nil
		}
		money := at.Member("money")
		if paid = paid || money != nil; money != nil && n.Member("currency") == nil {
			r.WrongKey(money, `a cap of money needs a currency; set budgets.currency, such as currency = "USD"`)
		}
	}
	for _, m := range c.paidModels() {
		if _, priced := p.Prices[m.name]; paid && !priced {
			r.Missing(n, "prices", "missing: expected the price of the model of %s, which a cap of money needs", m.of)
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
	for _, m := range config.paidModels() {
		if err := policy.Check(m.name); err != nil {
			return grammar.About("budgets", err)
		}
	}
	a.Options.Budget = &policy
	return nil
}
