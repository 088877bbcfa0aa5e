// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queryer is a [sqlstore.Queryer] on a connection, or on any connection of the pool.
type queryer struct {
	store *Store
	on    interface {
		Query(context.Context, string, ...any) (pgx.Rows, error)
		QueryRow(context.Context, string, ...any) pgx.Row
	}
}

// Row implements [sqlstore.Queryer].
func (q queryer) Row(ctx context.Context, statement string, args ...any) sqlstore.Scanner {
	return q.on.QueryRow(ctx, q.store.sql(statement), args...)
}

// Each implements [sqlstore.Queryer].
func (q queryer) Each(ctx context.Context, dest []any, do func() error, statement string, args ...any) error {
	rows, err := q.on.Query(ctx, q.store.sql(statement), args...)
	if err == nil {
		_, err = pgx.ForEachRow(rows, dest, do)
	}
	return err
}

// Balances implements [sqlstore.Queryer].
func (q queryer) Balances(ctx context.Context, accounts []string) (map[string]budget.Balance, error) {
	return q.balances(ctx, "SELECT name, spent, reserved FROM @.accounts WHERE name = ANY ($1)", accounts)
}

// balances returns the balances that a statement finds for accounts with those names.
func (q queryer) balances(ctx context.Context, statement string, names []string) (map[string]budget.Balance, error) {
	held := map[string]budget.Balance{}
	var name string
	var b budget.Balance
	err := q.Each(ctx, []any{&name, &b.Spent, &b.Reserved}, func() error {
		held[name] = b
		return nil
	}, statement, names)
	return held, err
}

// writer is a [sqlstore.Tx]: a connection in a transaction.
type writer struct {
	queryer
	conn   *pgxpool.Conn
	queued pgx.Batch // for Commit
}

// Begin implements [sqlstore.Tx]. It begins a transaction whose commit waits for the disk, whatever the server's
// default, and reads the row of its first statement, in one round trip. The statements
// here rely on READ COMMITTED. If the program is stopped in the middle of a
// transaction, others wait for at most 5 s; then the server ends the transaction.
func (w *writer) Begin(ctx context.Context, scan func(sqlstore.Scanner) error, statement string, args ...any) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(`SELECT set_config('idle_in_transaction_session_timeout', '5s', true),
		CASE WHEN current_setting('synchronous_commit') <> 'remote_apply' THEN set_config('synchronous_commit', 'on', true) END`)
	b.Queue(w.store.sql(statement), args...).QueryRow(func(row pgx.Row) error { return scan(row) })
	return w.conn.SendBatch(ctx, b).Close()
}

// LockReservation implements [sqlstore.Tx].
func (w *writer) LockReservation(ctx context.Context, id string) error {
	return w.Begin(ctx, func(row sqlstore.Scanner) error { return row.Scan(nil) },
		"SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", w.store.schema+" reservation "+id)
}

// HoldAccounts implements [sqlstore.Tx]. It creates the missing accounts.
// All transactions lock them in the same order.
func (w *writer) HoldAccounts(ctx context.Context, names []string) (map[string]budget.Balance, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if _, err := w.Exec(ctx, "INSERT INTO @.accounts (name, spent, reserved) SELECT unnest($1::text[]), 0, 0 ON CONFLICT DO NOTHING", names); err != nil {
		return nil, err
	}
	held, err := w.balances(ctx, "SELECT name, spent, reserved FROM @.accounts WHERE name = ANY ($1) ORDER BY name FOR UPDATE", names)
	if err == nil && len(held) < len(names) {
		err = sqlstore.ErrRace // another transaction has just removed one
	}
	return held, err
}

// Exec implements [sqlstore.Tx].
func (w *writer) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	done, err := w.conn.Exec(ctx, w.store.sql(statement), args...)
	return done.RowsAffected(), err
}

// Queue implements [sqlstore.Tx].
func (w *writer) Queue(_ context.Context, statement string, args ...any) error {
	w.queued.Queue(w.store.sql(statement), args...)
	return nil
}

// Commit implements [sqlstore.Tx]. It runs the queued statements and commits in one
// round trip. COMMIT waits for the standbys only if the transaction has written something, so if
// nothing is queued it writes a message to the log of the server. A server that stops waiting for a synchronous standby, because the statement
// was canceled, has committed, and only warns that the standby may not have the transaction.
// Then Commit returns an error.
func (w *writer) Commit(ctx context.Context) error {
	if w.queued.Len() == 0 {
		w.queued.Queue("SELECT pg_logical_emit_message(true, 'consort', '')")
	}
	w.queued.Queue("COMMIT")
	results := w.conn.SendBatch(ctx, &w.queued)
	for range w.queued.Len() - 1 {
		_, _ = results.Exec() // Close returns the error
	}
	data := w.conn.Conn().PgConn().CustomData()
	delete(data, warning) // of another statement
	err := results.Close()
	warned, _ := data[warning].(error)
	return cmp.Or(err, ctx.Err(), warned)
}
