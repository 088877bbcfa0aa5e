// SPDX-License-Identifier: Apache-2.0

package budgettest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/testing/suite"
)

// Harness describes a ledger under test to the suite.
type Harness struct {
	// Open opens the ledger. Each call opens the same accounts, and the ledger is empty
	// at first. Open must close the ledger with t.Cleanup. If the ledger is not Shared,
	// Open may return the same one each time.
	Open func() (budget.Ledger, error)
	// Shared says that the ledger may be open several times at once, as in several
	// processes, and is persistent.
	Shared bool
	// Patience is how long the suite waits for events that should happen soon; default
	// 30 s.
	Patience time.Duration
}

// TestLedger runs the suite that every [budget.Ledger] must pass. It creates a new
// harness for each case. Each case is a subtest that logs its rule when it fails.
func TestLedger(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range ledgerCases {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			if c.needs == shared && !h.Shared {
				t.Skip("the ledger is not shared")
			}
			s := &ledgerSubject{T: t, Harness: h}
			s.Patience = cmp.Or(h.Patience, 30*time.Second)
			s.ledger = s.open()
			defer suite.Rule(t, c.rule)
			c.check(s)
		})
	}
}

// ledgerCase is one rule and how it is checked.
type ledgerCase struct {
	name, needs, rule string
	check             func(*ledgerSubject)
}

// ledgerSubject is the ledger in a running case.
type ledgerSubject struct {
	*testing.T
	Harness
	ledger budget.Ledger
}

// noon is the time used in the cases.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// open opens the ledger again.
func (s *ledgerSubject) open() budget.Ledger {
	s.Helper()
	ledger, err := s.Open()
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	return ledger
}

// context returns a context that ends when the suite's patience does.
func (s *ledgerSubject) context() context.Context { return suite.Context(s.T, s.Patience) }

// line returns a line for an account with that limit.
func line(account string, limit, least, most int64) budget.Line {
	return budget.Line{Account: account, Limit: limit, Least: least, Most: most}
}

// reservation returns a reservation that expires in a day.
func reservation(id string, lines ...budget.Line) budget.Reservation {
	return budget.Reservation{ID: id, Lines: lines, Now: noon, Expires: noon.Add(24 * time.Hour)}
}

// reserves checks which amounts are granted.
func (s *ledgerSubject) reserves(r budget.Reservation, want ...int64) {
	s.Helper()
	granted, err := s.ledger.Reserve(s.context(), r)
	if err != nil {
		s.Fatalf("Reserve of %s: %v", r.ID, err)
	}
	if !slices.Equal(granted, want) {
		s.Errorf("Reserve of %s grants %d, want %d", r.ID, granted, want)
	}
}

// denies checks that a reservation is denied because of a line.
func (s *ledgerSubject) denies(r budget.Reservation, index int, balance budget.Balance) {
	s.Helper()
	_, err := s.ledger.Reserve(s.context(), r)
	var denied *budget.DeniedError
	if !errors.As(err, &denied) {
		s.Fatalf("Reserve of %s is %v, want a DeniedError", r.ID, err)
	}
	l := r.Lines[index]
	want := budget.DeniedError{Line: index, Account: l.Account, Limit: l.Limit, Balance: balance, Needed: l.Least}
	if *denied != want {
		s.Errorf("Reserve of %s is denied with %+v, want %+v", r.ID, *denied, want)
	}
}

// settles settles a reservation, which must succeed.
func (s *ledgerSubject) settles(id string, spent map[string]int64) {
	s.Helper()
	if err := s.ledger.Settle(s.context(), id, spent); err != nil {
		s.Fatalf("Settle of %s: %v", id, err)
	}
}

// holds checks the balance of an account.
func (s *ledgerSubject) holds(account string, spent, reserved int64) {
	s.Helper()
	balances, err := s.ledger.Balances(s.context(), account)
	if err != nil || len(balances) != 1 {
		s.Fatalf("Balances of %s: %v, %v", account, balances, err)
	}
	if want := (budget.Balance{Spent: spent, Reserved: reserved}); balances[0] != want {
		s.Errorf("the account %s holds %+v, want %+v", account, balances[0], want)
	}
}
