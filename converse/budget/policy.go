// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// The defaults of a [Policy].
const (
	defaultAnswer = 8192
	defaultStep   = 15 * time.Minute
)

// shortest is the number of tokens that an answer must have room for; with less, the
// model is not called. Some servers refuse a lower bound.
const shortest = 16

// moment is the least time that must be left for work to begin.
const moment = time.Millisecond

// lasting is how long a reservation can be settled. After that its process is given up
// for dead, and the reserved amount is spent permanently.
const lasting = 24 * time.Hour

// Policy is the budget of conversations. Many conversations can share one; it must not
// be changed while in use.
type Policy struct {
	// Ledger keeps the accounts. All policies with the same ledger share its accounts.
	Ledger Ledger
	// Caps all apply together. No two may limit the same unit in the same scope and
	// window.
	Caps []Cap
	// Prices are the prices of the models, by the names used in requests. A cap of
	// money requires one for each model in use.
	Prices map[string]Price
	// Currency is the currency of Prices and of all caps of money, for example EUR:
	// letters and digits, which become part of account names. It may be empty if no cap
	// limits money.
	Currency string
	// Roster names the accounts of the caps of scope [Roster]. Programs with the same
	// text share them; the empty text counts as a text.
	Roster string
	// Answer is the number of tokens reserved for an answer, and the maximum length of
	// an answer, under caps of tokens or money; default 8192. A lower bound of the
	// model or of the request takes precedence.
	Answer int64
	// Step is the time reserved for an exchange, or for the calls of one message
	// together, and the maximum that these may take, under caps of time; default 15
	// minutes.
	Step time.Duration
}

// Check validates a policy for conversations with the named model.
func (p *Policy) Check(model string) error {
	if p.Ledger == nil {
		return errors.New("budget: the policy has no ledger")
	}
	if p.Answer < 0 || p.Answer > MaxAmount || p.Step < 0 || p.Step > MaxAmount {
		return fmt.Errorf("budget: Answer is %d and Step %v; neither may be negative or more than %d", p.Answer, p.Step, int64(MaxAmount))
	}
	for name, price := range p.Prices {
		for _, part := range []Money{price.Input, max(price.Cached, 0), max(price.CacheWritten, 0), price.Output} {
			if part < 0 || part > MaxAmount {
				return fmt.Errorf("budget: the model %q has a price of %v; it must be from 0 to %v", name, part, Money(MaxAmount))
			}
		}
	}
	type account struct {
		Scope
		Window
		unit
	}
	seen := map[account]bool{}
	for i, c := range p.Caps {
		if err := c.check(); err != nil {
			return fmt.Errorf("budget: cap %d: %w", i, err)
		}
		for _, u := range []unit{tokens, money, span} {
			if key := (account{c.Scope, c.Window, u}); c.limit(u) > 0 {
				if seen[key] {
					return fmt.Errorf("budget: cap %d: another cap also limits the %s of each %s%s", i, u, c.Scope, c.Window.per())
				}
				seen[key] = true
			}
		}
	}
	return p.checkMoney(model)
}

// checkMoney returns why caps of money cannot be enforced, if there are any.
func (p *Policy) checkMoney(model string) error {
	if !p.limits(money) {
		return nil
	}
	if !isCurrency(p.Currency) {
		return fmt.Errorf("budget: the currency is %s; it must be 1 to 16 letters and digits, such as EUR", quote(p.Currency))
	}
	if _, priced := p.Prices[model]; !priced {
		return fmt.Errorf("budget: a cap of money needs a price for the model %q", model)
	}
	return nil
}

func isCurrency(text string) bool {
	for _, r := range text {
		if (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return text != "" && len(text) <= 16
}

// limits reports whether a cap limits the unit.
func (p *Policy) limits(u unit) bool {
	for _, c := range p.Caps {
		if c.limit(u) > 0 {
			return true
		}
	}
	return false
}

// LimitsTime reports whether there is a cap of time.
func (p *Policy) LimitsTime() bool { return p.limits(span) }

// Standing is how much of a cap a spender has used.
type Standing struct {
	Cap      Cap
	Spent    Amount
	Reserved Amount
}

// Amount is an amount in each unit. In a [Standing], only the units that the cap limits
// are set.
type Amount struct {
	Tokens int64
	Money  Money
	Time   time.Duration
}

// Add returns the sum; see [Sum].
func (a Amount) Add(b Amount) Amount {
	return Amount{
		Tokens: Sum(a.Tokens, b.Tokens),
		Money:  Money(Sum(int64(a.Money), int64(b.Money))),
		Time:   time.Duration(Sum(int64(a.Time), int64(b.Time))),
	}
}

// set sets one unit.
func (a *Amount) set(u unit, amount int64) {
	switch u {
	case tokens:
		a.Tokens = amount
	case money:
		a.Money = Money(amount)
	case span:
		a.Time = time.Duration(amount)
	}
}

// get returns one unit.
func (a Amount) get(u unit) int64 {
	switch u {
	case tokens:
		return a.Tokens
	case money:
		return int64(a.Money)
	}
	return int64(a.Time)
}

// Standings returns how much of each cap a spender has used, in the order of Caps.
func (p *Policy) Standings(ctx context.Context, who Who, now time.Time) ([]Standing, error) {
	standings := make([]Standing, len(p.Caps))
	for i, c := range p.Caps {
		standings[i].Cap = c
		for _, u := range []unit{tokens, money, span} {
			if c.limit(u) == 0 {
				continue
			}
			account, _ := p.account(c, u, who, now)
			balances, err := p.Ledger.Balances(ctx, account)
			if err != nil {
				return nil, err
			}
			standings[i].Spent.set(u, balances[0].Spent)
			standings[i].Reserved.set(u, balances[0].Reserved)
		}
	}
	return standings, nil
}

// answer returns the bound of an answer when asked tokens are requested; 0 means
// unbounded.
func (p *Policy) answer(asked int64) int64 {
	most := cmp.Or(p.Answer, defaultAnswer)
	if asked > 0 {
		most = min(most, asked)
	}
	return most
}
