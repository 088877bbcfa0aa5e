// SPDX-License-Identifier: Apache-2.0

package budgettest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/budget/budgettest"
	"github.com/consort-go/consort/internal/testing/suite"
)

// brokenLedger is a ledger in memory with one rule broken: a function that is there
// takes the place of a method.
type brokenLedger struct {
	*budget.Memory
	reserve  func(ctx context.Context, r budget.Reservation) ([]int64, error)
	settle   func(ctx context.Context, id string, spent map[string]int64) error
	balances func(ctx context.Context, accounts []string) ([]budget.Balance, error)
}

func (b *brokenLedger) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	if b.reserve == nil {
		return b.Memory.Reserve(ctx, r)
	}
	return b.reserve(ctx, r)
}

func (b *brokenLedger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if b.settle == nil {
		return b.Memory.Settle(ctx, id, spent)
	}
	return b.settle(ctx, id, spent)
}

func (b *brokenLedger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	if b.balances == nil {
		return b.Memory.Balances(ctx, accounts...)
	}
	return b.balances(ctx, accounts)
}

// reserving changes the reservation.
func reserving(change func(r *budget.Reservation)) func(*brokenLedger) {
	return func(b *brokenLedger) {
		b.reserve = func(ctx context.Context, r budget.Reservation) ([]int64, error) {
			r.Lines = slices.Clone(r.Lines)
			change(&r)
			return b.Memory.Reserve(ctx, r)
		}
	}
}

// anyLine reserves as many lines as possible, one by one.
func (b *brokenLedger) anyLine(ctx context.Context, r budget.Reservation) (granted []int64, _ error) {
	for i, line := range r.Lines {
		single := r
		single.ID, single.Lines = r.ID+line.Account, []budget.Line{line}
		amount, err := b.Memory.Reserve(ctx, single)
		if denied := new(budget.DeniedError); errors.As(err, &denied) {
			denied.Line = i
		}
		if err != nil {
			return nil, err
		}
		granted = append(granted, amount...)
	}
	return granted, nil
}

// lookFirst reserves according to an earlier state.
func (b *brokenLedger) lookFirst(mu *sync.Mutex) func(ctx context.Context, r budget.Reservation) ([]int64, error) {
	return func(ctx context.Context, r budget.Reservation) ([]int64, error) {
		names := make([]string, len(r.Lines))
		for i, line := range r.Lines {
			names[i] = line.Account
		}
		balances, err := b.Memory.Balances(ctx, names...)
		if err != nil {
			return nil, err
		}
		granted, err := r.Grant(balances)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond) // in which others read the state too
		mu.Lock()
		defer mu.Unlock()
		for i := range r.Lines {
			r.Lines[i].Least, r.Lines[i].Most, r.Lines[i].Limit = granted[i], granted[i], budget.MaxAmount
		}
		return b.Memory.Reserve(ctx, r)
	}
}

// rewriteSpent changes the settled amounts.
func rewriteSpent(change func(spent map[string]int64) map[string]int64) func(*brokenLedger) {
	return func(b *brokenLedger) {
		b.settle = func(ctx context.Context, id string, spent map[string]int64) error {
			return b.Memory.Settle(ctx, id, change(maps.Clone(spent)))
		}
	}
}

// ledgerBreaks has for each case of the suite a defect that it must find; the text after
// a space distinguishes several for one case.
var ledgerBreaks = map[string]func(*brokenLedger){
	"Reserve/most":     reserving(func(r *budget.Reservation) { r.Lines[0].Most = r.Lines[0].Least }),
	"Reserve/least":    reserving(func(r *budget.Reservation) { r.Lines[0].Least = 0 }),
	"Reserve/all":      func(b *brokenLedger) { b.reserve = b.anyLine },
	"Reserve/again":    reserving(func(r *budget.Reservation) { r.ID += time.Now().String() }),
	"Reserve/attempts": reserving(func(r *budget.Reservation) { r.Work = "" }),
	"Clock/ahead":      reserving(func(r *budget.Reservation) { r.Expires = r.Expires.Add(-48 * time.Hour) }),
	"Reserve/nothing":  reserving(func(r *budget.Reservation) { r.Lines = append(r.Lines, budget.Line{Account: "a", Limit: 1, Most: 1}) }),
	"Reserve/bad":      reserving(func(r *budget.Reservation) { r.ID = "good" }),
	"Settle/less":      rewriteSpent(func(map[string]int64) map[string]int64 { return nil }),
	"Settle/more":      rewriteSpent(func(spent map[string]int64) map[string]int64 { spent["a"] = min(spent["a"], 20); return spent }),
	"Settle/as-reserved": rewriteSpent(func(spent map[string]int64) map[string]int64 {
		return map[string]int64{"a": spent["a"], "b": spent["b"]}
	}),
	"Settle/twice":  func(b *brokenLedger) { b.settle = b.always },
	"Settle/bad":    rewriteSpent(func(spent map[string]int64) map[string]int64 { spent["a"] = max(spent["a"], 0); return spent }),
	"Expire":        reserving(func(r *budget.Reservation) { r.Expires = r.Expires.Add(time.Hour) }),
	"Ends":          reserving(func(r *budget.Reservation) { r.Now = r.Now.Add(time.Hour) }),
	"Amounts/large": reserving(func(r *budget.Reservation) { r.Lines[0].Limit = min(r.Lines[0].Limit, 1<<53) }),
	"Names/odd": reserving(func(r *budget.Reservation) {
		r.ID = strings.TrimSpace(r.ID)
		r.Lines[0].Account = strings.ToLower(r.Lines[0].Account)
	}),
	"End/context":       func(b *brokenLedger) { b.balances = b.heedless },
	"Race/limit":        func(b *brokenLedger) { b.reserve = b.lookFirst(new(sync.Mutex)) },
	"Race/limit-of-two": func(b *brokenLedger) { b.reserve = b.lookFirst(new(sync.Mutex)) },
	"Race/same":         reserving(func(r *budget.Reservation) { r.ID += r.Lines[0].Account }),
	"Shared/seen":       func(b *brokenLedger) { b.Memory = budget.NewMemory() },
	"Random":            rewriteSpent(func(spent map[string]int64) map[string]int64 { delete(spent, "d"); return spent }),
	"Random/reopened":   func(b *brokenLedger) { b.Memory = budget.NewMemory() },
}

// always counts settled amounts, with or without a reservation.
func (b *brokenLedger) always(ctx context.Context, id string, spent map[string]int64) error {
	r := budget.Reservation{ID: id, Expires: time.Unix(1<<40, 0)}
	for account := range spent {
		r.Lines = append(r.Lines, budget.Line{Account: account, Limit: budget.MaxAmount})
	}
	if _, err := b.Memory.Reserve(ctx, r); err != nil {
		return err
	}
	return b.Memory.Settle(ctx, id, spent)
}

func (b *brokenLedger) heedless(_ context.Context, accounts []string) ([]budget.Balance, error) {
	return b.Memory.Balances(context.Background(), accounts...)
}

// TestBrokenLedger runs the suite over a ledger that breaks one rule; only for
// TestLedgerSuiteFinds, which runs it in a process of its own.
func TestBrokenLedger(t *testing.T) {
	name := suite.BrokenRule(t, "BUDGETTEST_BREAK")
	budgettest.TestLedger(t, func(*testing.T) budgettest.Harness {
		memory := budget.NewMemory()
		return budgettest.Harness{Shared: true, Patience: 10 * time.Second, Open: func() (budget.Ledger, error) {
			b := &brokenLedger{Memory: memory}
			ledgerBreaks[name](b)
			return b, nil
		}}
	})
}

// TestLedgerSuiteFinds checks that each case of the suite can fail.
func TestLedgerSuiteFinds(t *testing.T) {
	suite.Finds(t, "TestBrokenLedger", "BUDGETTEST_BREAK", ledgerBreaks)
}
