// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/jackc/pgx/v5"
)

// Ledger returns the ledger in the same schema, which is shared by all programs that
// use the schema. It is closed with the store.
func (s *Store) Ledger() budget.Ledger { return ledger{s} }

type ledger struct{ store *Store }

// errTidy says that expired reservations or ended accounts must be removed before a
// reservation.
var errTidy = errors.New("reservations have expired, or accounts have ended")

// Reserve implements [budget.Ledger]. It waits for concurrent calls that reserve or
// settle on the same accounts.
func (l ledger) Reserve(ctx context.Context, r budget.Reservation) (granted []int64, err error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	reserve := func(tidy bool) error {
		return l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
			granted, verdict, err = w.reserve(ctx, r, tidy)
			return verdict, err
		})
	}
	if err = reserve(true); err == errTidy {
		if err = l.tidy(ctx, r.Now); err == nil {
			err = reserve(false) // others may tidy at the same time
		}
	}
	if err != nil {
		return nil, err
	}
	return granted, nil
}

// Settle implements [budget.Ledger].
func (l ledger) Settle(ctx context.Context, id string, spent map[string]int64) error {
	if err := budget.CheckSpent(spent); err != nil {
		return err
	}
	return l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
		return nil, w.settle(ctx, id, spent, nil)
	})
}

// Balances implements [budget.Ledger].
func (l ledger) Balances(ctx context.Context, accounts ...string) ([]budget.Balance, error) {
	var held map[string]budget.Balance
	err := l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
		held, err = w.balances(ctx, "SELECT name, spent, reserved FROM @.accounts WHERE name = ANY ($1)", accounts)
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	balances := make([]budget.Balance, len(accounts))
	for i, account := range accounts {
		balances[i] = held[account]
	}
	return balances, nil
}

// tidy settles the reservations that have expired, and removes the accounts that ended
// more than [budget.Keep] ago.
func (l ledger) tidy(ctx context.Context, now time.Time) error {
	var expired []string
	err := l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
		rows, err := w.conn.Query(ctx, w.store.sql("SELECT DISTINCT id FROM @.reservations WHERE expires <= $1"), now)
		if err == nil {
			expired, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return nil, err
	})
	for _, id := range expired {
		if err != nil {
			break
		}
		err = l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
			return nil, w.settle(ctx, id, nil, &now)
		})
	}
	if err != nil {
		return err
	}
	return l.store.write(ctx, "", func(ctx context.Context, w *writer) (verdict, err error) {
		_, err = w.conn.Exec(ctx, w.store.sql("DELETE FROM @.accounts WHERE ends <= $1 AND reserved = 0"), now.Add(-budget.Keep))
		return nil, err
	})
}

// own begins a transaction that locks a reservation, and returns its amounts by
// account. If expired is set and the reservation has not expired by then, the result is
// empty.
func (w *writer) own(ctx context.Context, id string, expired *time.Time) (map[string]int64, error) {
	lock := func(row pgx.Row) error { return row.Scan(nil) }
	if err := w.begin(ctx, lock, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", w.store.schema+" reservation "+id); err != nil {
		return nil, err
	}
	rows, err := w.conn.Query(ctx, w.store.sql("SELECT account, amount FROM @.reservations WHERE id = $1 AND ($2::timestamptz IS NULL OR expires <= $2)"), id, expired)
	if err != nil {
		return nil, err
	}
	amounts := map[string]int64{}
	var account string
	var amount int64
	_, err = pgx.ForEachRow(rows, []any{&account, &amount}, func() error {
		amounts[account] = amount
		return nil
	})
	return amounts, err
}

// balances returns the balances that a statement finds for accounts with those names.
func (w *writer) balances(ctx context.Context, statement string, names []string) (map[string]budget.Balance, error) {
	rows, err := w.conn.Query(ctx, w.store.sql(statement), names)
	if err != nil {
		return nil, err
	}
	held := map[string]budget.Balance{}
	var name string
	var b budget.Balance
	_, err = pgx.ForEachRow(rows, []any{&name, &b.Spent, &b.Reserved}, func() error {
		held[name] = b
		return nil
	})
	return held, err
}

// hold creates the missing accounts, locks all accounts, and returns their balances.
// All transactions lock them in the same order.
func (w *writer) hold(ctx context.Context, names []string) (map[string]budget.Balance, error) {
	slices.Sort(names)
	names = slices.Compact(names)
	if _, err := w.conn.Exec(ctx, w.store.sql("INSERT INTO @.accounts (name, spent, reserved) SELECT unnest($1::text[]), 0, 0 ON CONFLICT DO NOTHING"), names); err != nil {
		return nil, err
	}
	held, err := w.balances(ctx, "SELECT name, spent, reserved FROM @.accounts WHERE name = ANY ($1) ORDER BY name FOR UPDATE", names)
	if err == nil && len(held) < len(names) {
		err = errRace // another transaction has just removed one
	}
	return held, err
}

// reserve implements [budget.Ledger.Reserve]. If tidy is set and there is something to
// tidy, the verdict is errTidy.
func (w *writer) reserve(ctx context.Context, r budget.Reservation, tidy bool) (granted []int64, verdict, err error) {
	own, err := w.own(ctx, r.ID, nil)
	if err != nil {
		return nil, nil, err
	}
	if tidy {
		err := w.row(ctx, `SELECT EXISTS (SELECT FROM @.reservations WHERE expires <= $1)
			OR EXISTS (SELECT FROM @.accounts WHERE ends <= $2 AND reserved = 0)`, r.Now, r.Now.Add(-budget.Keep)).Scan(&tidy)
		switch {
		case err != nil:
			return nil, nil, err
		case tidy:
			return nil, errTidy, nil
		}
	}
	names := slices.Collect(maps.Keys(own))
	for _, line := range r.Lines {
		names = append(names, line.Account)
	}
	held, err := w.hold(ctx, names)
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
	b := &pgx.Batch{}
	for account, amount := range own {
		b.Queue(w.store.sql("UPDATE @.accounts SET reserved = reserved - $2 WHERE name = $1"), account, amount)
	}
	b.Queue(w.store.sql("DELETE FROM @.reservations WHERE id = $1"), r.ID)
	for i, line := range r.Lines {
		var ends *time.Time
		if !line.Ends.IsZero() {
			ends = &line.Ends
		}
		b.Queue(w.store.sql("UPDATE @.accounts SET reserved = reserved + $2, ends = $3 WHERE name = $1"), line.Account, granted[i], ends)
		b.Queue(w.store.sql("INSERT INTO @.reservations (id, account, amount, expires) VALUES ($1, $2, $3, $4)"), r.ID, line.Account, granted[i], r.Expires)
	}
	return granted, nil, w.commit(ctx, b)
}

// settle implements [budget.Ledger.Settle]. If expired is set, it settles the
// reservation only if that has expired by then, because the reservation may have been
// made anew since the caller listed it.
func (w *writer) settle(ctx context.Context, id string, spent map[string]int64, expired *time.Time) error {
	own, err := w.own(ctx, id, expired)
	if err != nil || len(own) == 0 {
		return err
	}
	if _, err := w.hold(ctx, slices.Collect(maps.Keys(own))); err != nil {
		return err
	}
	b := &pgx.Batch{}
	for account, reserved := range own {
		amount, named := spent[account]
		if !named {
			amount = reserved
		}
		b.Queue(w.store.sql("UPDATE @.accounts SET reserved = reserved - $2, spent = least(spent + $3, $4) WHERE name = $1"),
			account, reserved, amount, int64(budget.MaxAmount))
	}
	b.Queue(w.store.sql("DELETE FROM @.reservations WHERE id = $1"), id)
	return w.commit(ctx, b)
}
