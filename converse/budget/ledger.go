// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ledger stores accounts, each with an amount spent and an amount reserved. All methods
// may be called concurrently, also by several processes if they share the ledger. A
// method whose context has ended does nothing and returns the error of the context.
// After an error other than that, a [*DeniedError] or the error of [Reservation.Check],
// it is unknown whether the call took effect: it is safe to repeat it.
type Ledger interface {
	// Reserve sets an amount aside on the account of each line, on all or none, and
	// returns the amounts in the order of the lines: each is Most, or what is left if
	// that is less. If less than Least is left, the error is a [*DeniedError]. What is
	// left is the line's Limit minus what the account has spent and reserved. An open
	// reservation of the same ID, or of another attempt at the same [Reservation.Work],
	// is replaced: it does not count while the new one is checked, and remains if that
	// is denied. When Reserve returns, the reservation would survive a power failure, if
	// the ledger is persistent.
	Reserve(ctx context.Context, r Reservation) ([]int64, error)
	// Settle replaces the reserved amount of each account by the amount spent, from 0
	// to MaxAmount, which may be less or more. If spent does not name an account of the
	// reservation, the reserved amount counts as spent. If no reservation of that ID is
	// open, Settle does nothing, so that a second Settle has no effect. A reservation
	// that another attempt has replaced stays open with amounts of 0: Settle adds the
	// amount spent, once.
	Settle(ctx context.Context, id string, spent map[string]int64) error
	// Balances returns the balances of the accounts, in their order. The balance of an
	// account that was never used is zero.
	Balances(ctx context.Context, accounts ...string) ([]Balance, error)
}

// Reservation lists the amounts to set aside.
type Reservation struct {
	// ID is the ID of the reservation: repeating the same call must use the same
	// ID. It is UTF-8 of 1 to 256 bytes without control characters.
	ID string
	// Work, if set, is the ID of work that several processes may attempt, in turn
	// or concurrently. ID is then Work, "#", and the ID of the attempt, without
	// "#".
	Work string
	// Lines must have different accounts.
	Lines []Line
	// Now is the time. A reservation whose Expires has passed by then, and by the clock
	// of the ledger, counts as spent in the amount reserved, and can no longer be
	// settled; the ledger may process this later.
	Now, Expires time.Time
}

// Line is the reservation on one account.
type Line struct {
	// Account is the name of the account. The rules for ID apply.
	Account string
	// Limit bounds the sum of the spent and reserved amounts of the account.
	Limit int64
	// Least and Most bound the amount: 0 <= Least <= Most <= MaxAmount.
	Least, Most int64
	// Ends is when the use of the account ends; zero means never. A ledger may remove
	// it [Keep] later, by Now and by its own clock, if nothing is reserved on it.
	Ends time.Time
}

// Keep is how long the accounts of a window can be read after its end.
const Keep = 32 * 24 * time.Hour

// Balance is the balance of an account.
type Balance struct {
	Spent    int64
	Reserved int64 // neither settled nor expired
}

// Held returns the amount that counts against a limit: the sum of both, at most
// MaxAmount.
func (b Balance) Held() int64 { return Sum(b.Spent, b.Reserved) }

// Sum adds amounts that are not negative; the result is at most MaxAmount.
func Sum(a, b int64) int64 { return min(min(a, MaxAmount)+min(b, MaxAmount), MaxAmount) }

// DeniedError reports that an account has too little left.
type DeniedError struct {
	Line    int // index in the reservation
	Account string
	Limit   int64
	Balance Balance // without the reservations that were to be replaced
	Needed  int64   // Least of the line
}

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("budget: the account %s may hold %d: it has spent %d and reserved %d, and %d are needed", e.Account, e.Limit, e.Balance.Spent, e.Balance.Reserved, e.Needed)
}

// Check validates a reservation. Every ledger begins with it.
func (r Reservation) Check() error {
	if err := checkName(r.ID); err != nil {
		return fmt.Errorf("budget: the ID of a reservation: %w", err)
	}
	if r.Work != "" && WorkOf(r.ID) != r.Work {
		return fmt.Errorf("budget: the ID of a reservation is %s; for the work %s it must be that, # and an attempt", quote(r.ID), quote(r.Work))
	}
	seen := map[string]bool{}
	for i, line := range r.Lines {
		err := checkName(line.Account)
		switch {
		case err != nil:
		case seen[line.Account]:
			err = errors.New("two lines have the same account")
		case line.Least < 0 || line.Least > line.Most || line.Most > MaxAmount:
			err = fmt.Errorf("the amounts are %d to %d; they must be in order, from 0 to %d", line.Least, line.Most, int64(MaxAmount))
		case line.Limit < 0 || line.Limit > MaxAmount:
			err = fmt.Errorf("the limit is %d; it must be from 0 to %d", line.Limit, int64(MaxAmount))
		}
		if err != nil {
			return fmt.Errorf("budget: line %d of a reservation: %w", i, err)
		}
		seen[line.Account] = true
	}
	return nil
}

// Replaces reports whether the reservation replaces an open one with that ID, because
// it has the same ID or is another attempt at the same work. Earlier versions used the
// identity of the work as the ID.
func (r Reservation) Replaces(id string) bool {
	return id == r.ID || r.Work != "" && (id == r.Work || WorkOf(id) == r.Work)
}

// Due returns the earlier of Now and the time of the ledger's clock. A ledger that
// processes the reservation settles expired reservations and removes ended accounts by
// that time, so that one wrong clock cannot affect other callers.
func (r Reservation) Due(clock time.Time) time.Time {
	if r.Now.Before(clock) {
		return r.Now
	}
	return clock
}

// WorkOf returns the ID of the work in the ID of an attempt, or the ID if it has
// none; see [Reservation.Work].
func WorkOf(id string) string {
	if i := strings.LastIndexByte(id, '#'); i >= 0 {
		return id[:i]
	}
	return id
}

// Grant returns the amount granted to each line. The balance of its account is at the
// same index of balances, without the reservations that are to be replaced.
func (r Reservation) Grant(balances []Balance) ([]int64, error) {
	granted := make([]int64, len(r.Lines))
	for i, line := range r.Lines {
		left := max(line.Limit-balances[i].Held(), 0)
		if left < line.Least {
			return nil, &DeniedError{Line: i, Account: line.Account, Limit: line.Limit, Balance: balances[i], Needed: line.Least}
		}
		granted[i] = min(line.Most, left)
	}
	return granted, nil
}

// CheckSpent validates the amounts to settle.
func CheckSpent(spent map[string]int64) error {
	for account, amount := range spent {
		if amount < 0 || amount > MaxAmount {
			return fmt.Errorf("budget: %d was spent on the account %s; it must be from 0 to %d", amount, quote(account), int64(MaxAmount))
		}
	}
	return nil
}

// maxName is the maximum length of a reservation's or account's name in bytes.
const maxName = 256

// checkName validates the ID of a reservation or the name of an account.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) > maxName:
		return fmt.Errorf("it has %d bytes, more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		return errors.New("it is not UTF-8")
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("it has the control character %U", r)
		}
	}
	return nil
}
