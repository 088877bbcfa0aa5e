// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// Ledger is a [budget.Ledger] in the tables accounts and reservations.
type Ledger struct{ Store *Store }

// errTidy says that expired reservations or ended accounts must be removed before a
// reservation.
var errTidy = errors.New("reservations have expired, or accounts have ended")

// Reserve implements [budget.Ledger]. It waits for concurrent calls that reserve or
// settle on the same accounts.
func (l Ledger) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	reserve := func(tidy bool) ([]int64, error) {
		return write(ctx, l.Store.DB, "", func(ctx context.Context, tx Tx) (granted []int64, verdict, err error) {
			return l.reserve(ctx, tx, r, tidy)
		})
	}
	granted, err := reserve(true)
	if err == errTidy {
		if err = l.tidy(ctx, r); err == nil {
			granted, err = reserve(false) // others may tidy at the same time
		}
	}
	return granted, err
}

// Settle implements [budget.Ledger].
func (l Ledger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if err := budget.CheckSpent(spent); err != nil {
		return err
	}
	spent = maps.Clone(spent) // the caller may change its map after the context has ended
	return l.settle(ctx, id, spent, time.Time{})
}

// Balances implements [budget.Ledger].
func (l Ledger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	var held map[string]budget.Balance
	err := l.Store.DB.Query(ctx, "", func(ctx context.Context, q Queryer) (err error) {
		held, err = q.Balances(ctx, accounts)
		return err
	})
	if err != nil {
		return nil, err
	}
	balances := make([]budget.Balance, len(accounts))
	for i, account := range accounts {
		balances[i] = held[account]
	}
	return balances, l.Store.Usable(ctx)
}

// tidy settles the reservations that have expired, and removes the accounts that ended more
// than [budget.Keep] ago, by r.Now and by the clock of the database. Each reservation is
// settled in its own transaction, so that all transactions lock the accounts in the same
// order.
func (l Ledger) tidy(ctx context.Context, r budget.Reservation) error {
	db := l.Store.DB
	clock, err := db.Now(ctx)
	if err != nil {
		return err
	}
	now := r.Due(clock)
	var expired []string
	err = db.Query(ctx, "", func(ctx context.Context, q Queryer) error {
		expired = nil
		var id string
		return q.Each(ctx, []any{&id}, func() error { expired = append(expired, id); return nil },
			"SELECT DISTINCT id FROM @.reservations WHERE expires <= $1", db.Time(now))
	})
	for _, id := range expired {
		if err != nil {
			break
		}
		err = l.SettleExpired(ctx, id, now)
	}
	if err != nil {
		return err
	}
	return db.Write(ctx, "", func(ctx context.Context, tx Tx) (verdict, err error) {
		var n int
		err = tx.Begin(ctx, func(row Scanner) error { return row.Scan(&n) }, "SELECT 1")
		if err == nil {
			err = tx.Queue(ctx, "DELETE FROM @.accounts WHERE ends <= $1 AND reserved = 0", db.Time(now.Add(-budget.Keep)))
		}
		if err != nil {
			return nil, err
		}
		return nil, tx.Commit(ctx)
	})
}

// open begins a transaction that locks a reservation, and returns its amounts by
// account. If expired is set and the reservation has not expired by then, the result is
// empty.
func (l Ledger) open(ctx context.Context, tx Tx, id string, expired time.Time) (map[string]int64, error) {
	if err := tx.LockReservation(ctx, budget.WorkOf(id)); err != nil {
		return nil, err
	}
	statement, args := "SELECT account, amount FROM @.reservations WHERE id = $1", []any{id}
	if !expired.IsZero() {
		statement, args = statement+" AND expires <= $2", append(args, l.Store.DB.Time(expired))
	}
	amounts := map[string]int64{}
	var account string
	var amount int64
	err := tx.Each(ctx, []any{&account, &amount}, func() error { amounts[account] = amount; return nil }, statement, args...)
	return amounts, err
}

// openAt is open for Reserve: it returns the amounts of the reservations that r
// replaces, by ID and account. All attempts at the same work have the same lock.
func (l Ledger) openAt(ctx context.Context, tx Tx, r budget.Reservation) (map[string]map[string]int64, error) {
	if err := tx.LockReservation(ctx, budget.WorkOf(r.ID)); err != nil {
		return nil, err
	}
	work := r.Work
	if work == "" {
		work = r.ID
	}
	replaced := map[string]map[string]int64{}
	var id, account string
	var amount int64
	err := tx.Each(ctx, []any{&id, &account, &amount}, func() error {
		if !r.Replaces(id) {
			return nil
		}
		if replaced[id] == nil {
			replaced[id] = map[string]int64{}
		}
		replaced[id][account] = amount
		return nil
	}, "SELECT id, account, amount FROM @.reservations WHERE amount > 0 AND (id = $1 OR id > $2 AND id < $3)",
		work, work+"#", work+"$") // $ follows #
	return replaced, err
}

// untidy reports whether there is something to tidy.
func (l Ledger) untidy(ctx context.Context, tx Tx, now time.Time) (untidy bool, err error) {
	err = tx.Row(ctx, `SELECT EXISTS (SELECT 1 FROM @.reservations WHERE expires <= $1)
		OR EXISTS (SELECT 1 FROM @.accounts WHERE ends <= $2 AND reserved = 0)`,
		l.Store.DB.Time(now), l.Store.DB.Time(now.Add(-budget.Keep))).Scan(&untidy)
	return untidy, err
}

// reserve implements Reserve in a transaction. If tidy is set and there is something to
// tidy, the verdict is errTidy.
func (l Ledger) reserve(ctx context.Context, tx Tx, r budget.Reservation, tidy bool) (granted []int64, verdict, err error) {
	replaced, err := l.openAt(ctx, tx, r)
	if err == nil && tidy {
		tidy, err = l.untidy(ctx, tx, r.Now)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case tidy:
		return nil, errTidy, nil
	}
	var names []string
	own := map[string]int64{} // of all that are replaced
	for _, amounts := range replaced {
		for account, amount := range amounts {
			names = append(names, account)
			own[account] += amount
		}
	}
	for _, line := range r.Lines {
		names = append(names, line.Account)
	}
	held, err := tx.HoldAccounts(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	balances := make([]budget.Balance, len(r.Lines))
	for i, line := range r.Lines {
		balances[i] = held[line.Account]
		balances[i].Reserved -= own[line.Account]
	}
	if granted, verdict = r.Grant(balances); verdict != nil {
		return nil, verdict, nil
	}
	return granted, nil, l.set(ctx, tx, r, replaced, granted)
}

// set records a reservation and commits. The replaced reservations of other attempts
// stay open with amounts of 0.
func (l Ledger) set(ctx context.Context, tx Tx, r budget.Reservation, replaced map[string]map[string]int64, granted []int64) error {
	var failed error
	queue := func(statement string, args ...any) {
		if failed == nil {
			failed = tx.Queue(ctx, statement, args...)
		}
	}
	for id, amounts := range replaced {
		for account, amount := range amounts {
			queue("UPDATE @.accounts SET reserved = reserved - $2 WHERE name = $1", account, amount)
		}
		queue("UPDATE @.reservations SET amount = 0 WHERE id = $1", id)
	}
	queue("DELETE FROM @.reservations WHERE id = $1", r.ID)
	for i, line := range r.Lines {
		queue(`INSERT INTO @.accounts AS a (name, spent, reserved, ends) VALUES ($1, 0, $2, $3)
			ON CONFLICT (name) DO UPDATE SET reserved = a.reserved + excluded.reserved, ends = excluded.ends`,
			line.Account, granted[i], l.Store.DB.Time(line.Ends))
		queue("INSERT INTO @.reservations (id, account, amount, expires) VALUES ($1, $2, $3, $4)",
			r.ID, line.Account, granted[i], l.Store.DB.Time(r.Expires))
	}
	if failed != nil {
		return failed
	}
	return tx.Commit(ctx)
}

// SettleExpired counts a reservation as spent if it has expired by now. It may have
// been made anew since the caller listed it.
func (l Ledger) SettleExpired(ctx context.Context, id string, now time.Time) error {
	return l.settle(ctx, id, nil, now)
}

// settle implements Settle, and if expired is set SettleExpired.
func (l Ledger) settle(ctx context.Context, id string, spent map[string]int64, expired time.Time) error {
	return l.Store.DB.Write(ctx, "", func(ctx context.Context, tx Tx) (verdict, err error) {
		own, err := l.open(ctx, tx, id, expired)
		switch {
		case err != nil:
			return nil, err
		case len(own) == 0:
			return nil, tx.Commit(ctx) // as in Delete
		}
		if _, err := tx.HoldAccounts(ctx, slices.Collect(maps.Keys(own))); err != nil {
			return nil, err
		}
		for account, reserved := range own {
			amount, named := spent[account]
			if !named {
				amount = reserved
			}
			if err := tx.Queue(ctx, "UPDATE @.accounts SET reserved = reserved - $2, spent = least(spent + $3, $4) WHERE name = $1",
				account, reserved, amount, int64(budget.MaxAmount)); err != nil {
				return nil, err
			}
		}
		if err := tx.Queue(ctx, "DELETE FROM @.reservations WHERE id = $1", id); err != nil {
			return nil, err
		}
		return nil, tx.Commit(ctx)
	})
}
