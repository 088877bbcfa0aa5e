// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Ledger keeps accounts, each of which holds what was spent and what is
// reserved. All methods may be called concurrently, also by several processes
// where they share one. One whose context has ended does nothing and returns the
// error of the context; after an error of another kind than that, a
// [*DeniedError] and that of [Reservation.Check], it is open whether something
// was done: to do the same again does no harm.
type Ledger interface {
	// Reserve sets an amount aside on each line's account, on all or none, and
	// returns the amounts in the order of the lines: each is Most, or what is
	// left if that is less. Where less than Least is left there is a
	// [*DeniedError]. What is left is the line's Limit without what the account
	// has spent and reserved. An open reservation of the same ID is replaced: it
	// does not count while the new one is looked at, and stays if that is
	// denied. When Reserve returns, the reservation would survive the loss of
	// power, if the ledger lasts at all.
	Reserve(ctx context.Context, r Reservation) ([]int64, error)
	// Settle puts what was spent on each account, from 0 to MaxAmount, in the
	// place of what was reserved, be it less or more. An account of the
	// reservation that spent does not name has spent what was reserved. If no
	// reservation of that ID is open, nothing is done, so that a second Settle
	// counts for nothing.
	Settle(ctx context.Context, id string, spent map[string]int64) error
	// Balances returns what the accounts hold, in their order. An account that
	// nobody has used has nothing.
	Balances(ctx context.Context, accounts ...string) ([]Balance, error)
}

// Reservation is what is to be set aside.
type Reservation struct {
	// ID is the identity of the reservation: the same whenever the same thing is
	// done again. It is UTF-8 of 1 to 256 bytes without control characters.
	ID string
	// Lines are about different accounts.
	Lines []Line
	// Now is the time. A reservation whose Expires has passed by then counts as
	// spent, as it was reserved, and cannot be settled any more; a ledger looks
	// after that at its leisure.
	Now, Expires time.Time
}

// Line is what a reservation sets aside on one account.
type Line struct {
	// Account is the name of the account, as an ID is.
	Account string
	// Limit is what the account may hold at most, spent and reserved together.
	Limit int64
	// Least and Most are what is wanted: 0 <= Least <= Most <= MaxAmount.
	Least, Most int64
	// Ends is when the account is not used any more; zero is never. A ledger
	// may forget it [Keep] later, if nothing is reserved on it.
	Ends time.Time
}

// Keep is how long the accounts of a window can be looked at when it is over.
const Keep = 32 * 24 * time.Hour

// Balance is what an account holds.
type Balance struct {
	Spent    int64
	Reserved int64 // and neither settled nor expired
}

// Held is what counts against a limit: both together, at most MaxAmount.
func (b Balance) Held() int64 { return Sum(b.Spent, b.Reserved) }

// Sum adds amounts that are not negative; it is at most MaxAmount.
func Sum(a, b int64) int64 { return min(min(a, MaxAmount)+min(b, MaxAmount), MaxAmount) }

// DeniedError says that an account has too little left.
type DeniedError struct {
	Line    int // of the reservation
	Account string
	Limit   int64
	Balance Balance // without the reservation that was to be replaced
	Needed  int64   // Least of the line
}

// Error says so.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("budget: the account %s may hold %d: it has spent %d and reserved %d, and %d are needed", e.Account, e.Limit, e.Balance.Spent, e.Balance.Reserved, e.Needed)
}

// Check says what is wrong with a reservation. Every ledger begins with it.
func (r Reservation) Check() error {
	if err := CheckName(r.ID); err != nil {
		return fmt.Errorf("budget: the identity of a reservation: %w", err)
	}
	seen := map[string]bool{}
	for i, line := range r.Lines {
		err := CheckName(line.Account)
		switch {
		case err != nil:
		case seen[line.Account]:
			err = errors.New("two lines are about the same account")
		case line.Least < 0 || line.Least > line.Most || line.Most > MaxAmount:
			err = fmt.Errorf("%d to %d are wanted; the amounts must be in order, from 0 to %d", line.Least, line.Most, int64(MaxAmount))
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

// Grant returns what each line is given, when its account holds what stands at
// the same place of balances, without the reservation that is to be replaced.
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

// CheckSpent says what is wrong with what is to be settled.
func CheckSpent(spent map[string]int64) error {
	for account, amount := range spent {
		if amount < 0 || amount > MaxAmount {
			return fmt.Errorf("budget: %d was spent on the account %s; it must be from 0 to %d", amount, quote(account), int64(MaxAmount))
		}
	}
	return nil
}

// maxName is how many bytes the name of a reservation or an account has at most.
const maxName = 256

// CheckName says what is wrong with the identity of a reservation or the name
// of an account.
func CheckName(name string) error {
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
