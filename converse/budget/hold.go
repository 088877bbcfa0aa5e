// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
)

// Need describes work that is about to spend from the budget.
type Need struct {
	ID    string // of the work; the same if it is repeated; see [Reservation.Work]
	Who   Who
	Model string // whose prices apply to an exchange
	// Exchange says that the work is a request to the model, of at most Input tokens,
	// for an answer of at most Answer tokens; 0 means unbounded.
	Exchange      bool
	Input, Answer int64
	// Time says that the duration of the work counts.
	Time bool
	Now  time.Time
}

// Hold is an open reservation for a [Need].
type Hold struct {
	// Answer is the maximum number of tokens of the answer; 0 means unbounded.
	Answer int64
	// Time is the maximum duration; 0 means unbounded.
	Time time.Duration

	policy  *Policy
	need    Need
	id      string // of the reservation
	entries []entry
	bounded *entry // its cap bounds Time
}

// entry is the reservation for one unit of a cap.
type entry struct {
	Cap
	unit
	line    Line
	granted int64
}

// ReachedError reports that a cap leaves too little.
type ReachedError struct {
	Cap  Cap
	Unit string // tokens, money or time
	// Spent and Reserved are the balance of the cap's account, Needed is the amount
	// needed in addition: in tokens, millionths or nanoseconds. If Lasted is set,
	// Needed is the reserved time and the others are 0.
	Spent, Reserved, Needed int64
	// Lasted says that the work was begun and used up all of its reserved time.
	Lasted bool

	currency string
}

// Error names the cap.
func (e *ReachedError) Error() string {
	u := unit(e.Unit)
	limit := fmt.Sprintf("the budget of %s%s for %s", u.text(e.Cap.limit(u), e.currency), e.Cap.Window.per(), e.Cap.Scope.whom())
	if e.Lasted {
		return fmt.Sprintf("the %s are over that %s had left", u.text(e.Needed, e.currency), limit)
	}
	text := fmt.Sprintf("%s does not suffice for the next step: %s are spent", limit, u.text(e.Spent, e.currency))
	if e.Reserved > 0 {
		text += fmt.Sprintf(", %s are reserved for work in progress", u.text(e.Reserved, e.currency))
	}
	return text + fmt.Sprintf(", and up to %s are needed", u.text(e.Needed, e.currency))
}

// text formats an amount.
func (u unit) text(amount int64, currency string) string {
	switch u {
	case tokens:
		return fmt.Sprintf("%d tokens", amount)
	case money:
		return Money(amount).String() + " " + currency
	}
	return time.Duration(amount).String()
}

// Reserve reserves the maximum that the work may spend. If a cap leaves too little, the
// error is a [*ReachedError]; any other error is the ledger's. An answer needs room for
// 16 tokens, or for fewer if fewer are requested, and work with a time limit needs at
// least a millisecond. The caller must settle the hold when the work is over.
func (p *Policy) Reserve(ctx context.Context, need Need) (*Hold, error) {
	h := &Hold{policy: p, need: need, entries: p.entries(need)}
	r := Reservation{Now: need.Now, Expires: need.Now.Add(lasting)}
	if err := checkName(need.ID); err != nil {
		return nil, fmt.Errorf("budget: the ID of a need: %w", err)
	}
	r.Work, r.ID = need.attempt()
	h.id = r.ID
	for _, e := range h.entries {
		r.Lines = append(r.Lines, e.line)
	}
	if len(r.Lines) == 0 {
		return h, nil
	}
	granted, err := p.Ledger.Reserve(ctx, r)
	if denied := new(DeniedError); errors.As(err, &denied) {
		e := h.entries[denied.Line]
		return nil, &ReachedError{
			Cap: e.Cap, Unit: string(e.unit), currency: p.Currency,
			Spent: denied.Balance.Spent, Reserved: denied.Balance.Reserved, Needed: denied.Needed,
		}
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		p.release(ctx, r)
		return nil, fmt.Errorf("budget: reserving: %w", err)
	}
	for i := range h.entries {
		h.entries[i].granted = granted[i]
	}
	h.bound()
	return h, nil
}

// releasing is the timeout for releasing a reservation.
const releasing = 10 * time.Second

// release settles a reservation with nothing if ctx has ended: the ledger may have made the
// reservation nevertheless, for example if ctx ended during a commit.
func (p *Policy) release(ctx context.Context, r Reservation) {
	if ctx.Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasing)
	defer cancel()
	nothing := map[string]int64{}
	for _, line := range r.Lines {
		nothing[line.Account] = 0
	}
	_ = p.Ledger.Settle(ctx, r.ID, nothing) // otherwise it counts as spent, once it expires
}

// attempt returns the ID of the work, and the ID of a new reservation for it.
func (n Need) attempt() (work, id string) {
	work, id = n.ID, "#"+rand.Text()
	if len(work)+len(id) > maxName {
		work = digest(work)
	}
	return work, work + id
}

// entries returns the reservations that a need requires, by cap and unit.
func (p *Policy) entries(need Need) []entry {
	var entries []entry
	for _, c := range p.Caps {
		for _, u := range []unit{tokens, money, span} {
			least, most, wanted := p.wants(u, need)
			if c.limit(u) == 0 || !wanted {
				continue
			}
			line := Line{Limit: c.limit(u), Least: min(least, MaxAmount), Most: min(most, MaxAmount)}
			line.Account, line.Ends = p.account(c, u, need.Who, need.Now)
			entries = append(entries, entry{Cap: c, unit: u, line: line})
		}
	}
	return entries
}

// wants returns the range that a need asks for in a unit, and whether it asks for any.
func (p *Policy) wants(u unit, need Need) (least, most int64, wanted bool) {
	if u == span {
		step := cmp.Or(p.Step, defaultStep)
		return int64(min(step, moment)), int64(step), need.Time
	}
	answer := p.answer(need.Answer)
	short := min(answer, shortest)
	input := min(max(need.Input, 0), MaxAmount)
	if u == tokens {
		return Sum(input, short), Sum(input, answer), need.Exchange
	}
	price := p.Prices[need.Model]
	cost := func(output int64) int64 {
		return Sum(int64(price.most(input)), int64(price.Cost(canister.Usage{Output: output})))
	}
	return cost(short), cost(answer), need.Exchange
}

// bound derives the bounds of the work from the granted amounts.
func (h *Hold) bound() {
	input := min(max(h.need.Input, 0), MaxAmount)
	for i, e := range h.entries {
		switch e.unit {
		case span:
			if granted := time.Duration(e.granted); h.bounded == nil || granted < h.Time {
				h.Time, h.bounded = granted, &h.entries[i]
			}
		case tokens:
			h.lower(e.granted - input)
		case money:
			price := h.policy.Prices[h.need.Model]
			h.lower(price.affords(Money(e.granted) - price.most(input)))
		}
	}
}

// TimeIsUp returns the error for work that has used up all of Time, or nil if Time is
// unbounded.
func (h *Hold) TimeIsUp() error {
	if h.bounded == nil {
		return nil
	}
	return &ReachedError{Cap: h.bounded.Cap, Unit: string(span), Needed: int64(h.Time), Lasted: true}
}

// lower lowers the bound of the answer.
func (h *Hold) lower(tokens int64) {
	most := h.policy.answer(h.need.Answer)
	if h.Answer > 0 {
		most = h.Answer
	}
	h.Answer = max(min(most, tokens), 1)
}

// Spent describes the amount that the work has spent.
type Spent struct {
	// Usage is the usage of an exchange. If it is nil, negative or zero, the request
	// and the whole permitted answer count as spent, because an answer that was not
	// received to its end has its price too.
	Usage *canister.Usage
	// Nothing says that the model was not reached, or refused the request.
	Nothing bool
	// Time is how long the work took, if Need.Time is set.
	Time time.Duration
}

// Settle replaces the reservation by the amount spent, and returns that amount. Time
// counts if Need.Time is set, money if the model has a price. After an error, which is
// the ledger's, the reservation may remain, and counts as spent.
func (h *Hold) Settle(ctx context.Context, spent Spent) (Amount, error) {
	amount := h.amount(spent)
	if len(h.entries) == 0 {
		return amount, nil
	}
	accounts := make(map[string]int64, len(h.entries))
	for _, e := range h.entries {
		accounts[e.line.Account] = amount.get(e.unit)
	}
	if err := h.policy.Ledger.Settle(ctx, h.id, accounts); err != nil {
		return amount, fmt.Errorf("budget: settling: %w", err)
	}
	return amount, nil
}

// amount returns the amount that was spent, or may have been.
func (h *Hold) amount(spent Spent) (amount Amount) {
	if h.need.Time {
		amount.Time = min(max(spent.Time, 0), MaxAmount)
	}
	if !h.need.Exchange || spent.Nothing {
		return amount
	}
	price := h.policy.Prices[h.need.Model]
	output := h.Answer
	if u := spent.Usage; u != nil && u.Input >= 0 && u.Output >= 0 {
		if u.Input > 0 {
			amount.Tokens, amount.Money = Sum(u.Input, u.Output), price.Cost(*u)
			return amount
		}
		output = cmp.Or(u.Output, output) // the server does not count requests
	}
	answer := price.Cost(canister.Usage{Output: output})
	amount.Tokens = Sum(max(h.need.Input, 0), output)
	amount.Money = Money(Sum(int64(price.most(h.need.Input)), int64(answer)))
	return amount
}
