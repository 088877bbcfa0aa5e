// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
)

// Budgets limit what conversations may spend. The accounts are stored together with the
// conversations, or in memory if conversations are not stored.
type Budgets struct {
	// Caps all apply at the same time; there is at least one.
	Caps []Cap
	// Prices are the prices of a million tokens, by model name.
	Prices map[string]Price
	// Currency is the currency of all amounts, such as USD.
	Currency string
	// Roster names the account of the caps with scope roster; may be empty.
	Roster string
	// AnswerTokens is the number of tokens reserved for an answer, which is also the
	// maximum of the answer; 0 means 8192.
	AnswerTokens int64
	// Step is how long an exchange, or the calls of one message, may take under a cap on
	// time; 0 means 15 minutes.
	Step time.Duration
}

// Cap limits spending in a window. A zero amount does not limit.
type Cap struct {
	Scope  budget.Scope  // required
	Window budget.Window // empty means no end
	Tokens int64
	Money  budget.Money
	Time   time.Duration
}

// Price is the price of a million tokens.
type Price struct{ Input, Cached, Output budget.Money }

func (b *Budgets) fields() []field {
	return []field{
		{"caps", each(&b.Caps, func(c *Cap) value { return tableOf(c.fields(), c.check) })},
		{"prices", byName(&b.Prices, func(p *Price) value { return tableOf(p.fields(), p.check) }, modelName)},
		{"currency", text(&b.Currency)},
		{"roster", text(&b.Roster)},
		{"answer_tokens", integer(&b.AnswerTokens, 16)},
		{"step", duration(&b.Step)},
	}
}

func (c *Cap) fields() []field {
	return []field{
		{"scope", choice(&c.Scope, budget.Conversation, budget.Identity, budget.Roster)},
		{"window", choice(&c.Window, budget.Hour, budget.Day, budget.Month)},
		{"tokens", integer(&c.Tokens, 1)},
		{"money", money(&c.Money)},
		{"time", duration(&c.Time)},
	}
}

func (c *Cap) check(r *reader, n *node) {
	if n.member("scope") == nil {
		r.missing(n, "scope", `missing: expected "conversation", "identity" or "roster"`)
	}
	if n.member("tokens") == nil && n.member("money") == nil && n.member("time") == nil {
		r.missing(n, "tokens", "missing: expected a limit of tokens, money or time")
	}
}

func (p *Price) fields() []field {
	return []field{{"input", money(&p.Input)}, {"cached", money(&p.Cached)}, {"output", money(&p.Output)}}
}

func (p *Price) check(r *reader, n *node) {
	for _, key := range []string{"input", "output"} {
		if n.member(key) == nil {
			r.missing(n, key, `missing: expected the price of a million tokens, such as %s = "0.25"`, key)
		}
	}
}

func modelName(name string) string {
	if name == "" {
		return "expected the name of a model, not an empty one"
	}
	return ""
}

// money is an amount in the currency.
func money(to *budget.Money) value {
	const kind = `an amount such as "2.50"`
	return value{kind: "an amount", read: func(r *reader, n *node) {
		s, ok := n.value.(string)
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

// check validates the table as a whole. model is the model of the conversations, or nil
// if it is not known.
func (b *Budgets) check(r *reader, n *node, model *Model) {
	caps, _ := n.member("caps").asList()
	if len(caps) == 0 {
		r.missing(n, "caps", "missing: expected at least one cap, such as caps = [{scope = \"conversation\", tokens = 1000000}]")
	}
	paid, seen := false, map[string]bool{}
	for i, at := range caps {
		for _, unit := range []string{"tokens", "money", "time"} {
			limit, c := at.member(unit), b.Caps[i]
			account := fmt.Sprintf("%s of %s in %s", unit, c.Scope, c.Window)
			if limit != nil && c.Scope != "" && seen[account] {
				r.add(r.problem(limit.keyAt, limit.path(), "another cap limits the %s of the same scope and window already", unit))
			}
			seen[account] = seen[account] || limit != nil
		}
		money := at.member("money")
		if paid = paid || money != nil; money != nil && n.member("currency") == nil {
			r.add(r.problem(money.keyAt, money.path(), `a cap of money needs a currency; set budgets.currency, such as currency = "USD"`))
		}
	}
	if model == nil || !paid {
		return
	}
	if _, priced := b.Prices[model.Name.Reveal()]; !priced {
		r.missing(n, "prices", "missing: expected the price of the model of [model], which a cap of money needs")
	}
}

// policy converts b to a budget policy; nil if b is nil.
func (b *Budgets) policy(ledger budget.Ledger, model string) (*budget.Policy, error) {
	if b == nil {
		return nil, nil
	}
	policy := &budget.Policy{Ledger: ledger, Currency: b.Currency, Roster: b.Roster, Answer: b.AnswerTokens, Step: b.Step, Prices: map[string]budget.Price{}}
	for _, c := range b.Caps {
		policy.Caps = append(policy.Caps, budget.Cap(c))
	}
	for name, price := range b.Prices {
		policy.Prices[name] = budget.Price(price)
	}
	return policy, policy.Check(model)
}

// keptLedger is the ledger of the conversation store, which is opened on first use.
type keptLedger struct {
	open func(context.Context) (history.Store, error)
}

func (l keptLedger) ledger(ctx context.Context) (budget.Ledger, error) {
	store, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	keeper, ok := store.(interface{ Ledger() budget.Ledger })
	if !ok {
		return nil, errors.New("budgets: the conversation store does not support accounts")
	}
	return keeper.Ledger(), nil
}

func (l keptLedger) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Reserve(ctx, r)
}

func (l keptLedger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return err
	}
	return ledger.Settle(ctx, id, spent)
}

func (l keptLedger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	ledger, err := l.ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Balances(ctx, accounts...)
}

// assembleBudgets sets the budget of the conversations.
func (a *Assembly) assembleBudgets(config *Config, _ *AssembleOptions) error {
	if config.Budgets == nil {
		return nil
	}
	var ledger budget.Ledger = budget.NewMemory()
	if config.Keeps() {
		ledger = keptLedger{a.History}
	}
	model := ""
	if config.Model != nil {
		model = config.Model.Name.Reveal()
	}
	policy, err := config.Budgets.policy(ledger, model)
	if err != nil && config.Model != nil {
		return about("budgets", err)
	}
	a.Options.Budget = policy
	return nil
}
