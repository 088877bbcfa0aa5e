// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// Ledger returns the ledger in the same file, which is shared by all programs that use
// the file. It is closed with the store.
func (s *Store) Ledger() budget.Ledger { return ledger{s} }

type ledger struct{ store *Store }

// Reserve implements [budget.Ledger].
func (l ledger) Reserve(ctx context.Context, r budget.Reservation) (granted []int64, _ error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	answer := make(chan []int64, 1) // buffered, because the caller may have returned
	err := l.store.ask(ctx, func(w *writer) (verdict, err error) {
		granted, verdict, err := w.reserve(r)
		if verdict == nil && err == nil {
			select {
			case <-answer: // from a transaction that failed
			default:
			}
			answer <- granted
		}
		return verdict, err
	})
	if err != nil {
		return nil, err
	}
	return <-answer, nil
}

// Settle implements [budget.Ledger].
func (l ledger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if err := budget.CheckSpent(spent); err != nil {
		return err
	}
	amounts := make(map[string]int64, len(spent)) // the caller may change its map after the context has ended
	for account, amount := range spent {
		amounts[account] = amount
	}
	return l.store.ask(ctx, func(w *writer) (verdict, err error) { return nil, w.settle(id, amounts) })
}

// Balances implements [budget.Ledger].
func (l ledger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	balances := make([]budget.Balance, len(accounts))
	for i, account := range accounts {
		err := l.store.query(ctx, "", func() (err error) {
			balances[i], err = balanceOf(ctx, l.store.read, account)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return balances, l.store.usable(ctx)
}

// balanceOf returns the balance of an account.
func balanceOf(ctx context.Context, in interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, account string) (b budget.Balance, err error) {
	err = in.QueryRowContext(ctx, "SELECT spent, reserved FROM accounts WHERE name = ?", account).Scan(&b.Spent, &b.Reserved)
	if errors.Is(err, sql.ErrNoRows) {
		return budget.Balance{}, nil
	}
	return b, err
}

// reserve implements [budget.Ledger.Reserve].
func (w *writer) reserve(r budget.Reservation) (granted []int64, verdict, err error) {
	if err := w.tidyAccounts(r.Now); err != nil {
		return nil, nil, err
	}
	own, err := w.open(r.ID)
	if err != nil {
		return nil, nil, err
	}
	balances := make([]budget.Balance, len(r.Lines))
	for i, line := range r.Lines {
		if balances[i], err = balanceOf(always, w.conn, line.Account); err != nil {
			return nil, nil, err
		}
		balances[i].Reserved -= own[line.Account]
	}
	if granted, verdict = r.Grant(balances); verdict != nil {
		return nil, verdict, nil
	}
	nothing := map[string]int64{}
	for account := range own {
		nothing[account] = 0
	}
	if err := w.settle(r.ID, nothing); err != nil {
		return nil, nil, err
	}
	for i, line := range r.Lines {
		ends := sql.NullInt64{Int64: line.Ends.UnixMicro(), Valid: !line.Ends.IsZero()}
		if err := w.do(`INSERT INTO accounts (name, spent, reserved, ends) VALUES (?, 0, ?, ?)
			ON CONFLICT (name) DO UPDATE SET reserved = reserved + excluded.reserved, ends = excluded.ends`,
			line.Account, granted[i], ends); err != nil {
			return nil, nil, err
		}
		if err := w.do("INSERT INTO reservations (id, account, amount, expires) VALUES (?, ?, ?, ?)",
			r.ID, line.Account, granted[i], r.Expires.UnixMicro()); err != nil {
			return nil, nil, err
		}
	}
	return granted, nil, nil
}

// do executes a statement.
func (w *writer) do(statement string, args ...any) error {
	_, err := w.conn.ExecContext(always, statement, args...)
	return err
}

// open returns the amounts of a reservation by account.
func (w *writer) open(id string) (map[string]int64, error) {
	rows, err := w.conn.QueryContext(always, "SELECT account, amount FROM reservations WHERE id = ?", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	amounts := map[string]int64{}
	for rows.Next() {
		var account string
		var amount int64
		if err := rows.Scan(&account, &amount); err != nil {
			return nil, err
		}
		amounts[account] = amount
	}
	return amounts, rows.Err()
}

// settle implements [budget.Ledger.Settle].
func (w *writer) settle(id string, spent map[string]int64) error {
	amounts, err := w.open(id)
	if err != nil || len(amounts) == 0 {
		return err
	}
	for account, reserved := range amounts {
		amount, named := spent[account]
		if !named {
			amount = reserved
		}
		if err := w.do("UPDATE accounts SET reserved = reserved - ?, spent = min(spent + ?, ?) WHERE name = ?",
			reserved, amount, int64(budget.MaxAmount), account); err != nil {
			return err
		}
	}
	return w.do("DELETE FROM reservations WHERE id = ?", id)
}

// tidyAccounts settles the reservations that have expired, and removes the accounts
// that ended more than [budget.Keep] ago.
func (w *writer) tidyAccounts(now time.Time) error {
	rows, err := w.conn.QueryContext(always, "SELECT DISTINCT id FROM reservations WHERE expires <= ?", now.UnixMicro())
	if err != nil {
		return err
	}
	var expired []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return errors.Join(err, rows.Close())
		}
		expired = append(expired, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, id := range expired {
		if err := w.settle(id, nil); err != nil {
			return err
		}
	}
	return w.do("DELETE FROM accounts WHERE ends <= ? AND reserved = 0", now.Add(-budget.Keep).UnixMicro())
}
