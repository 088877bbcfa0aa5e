// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tries is how often something is done that failed without an effect.
const tries = 10

// writer is a connection in the middle of a transaction.
type writer struct {
	store *Store
	conn  *pgxpool.Conn
}

// write does something in a transaction that do begins with [writer.begin] and
// ends with [writer.commit]. A verdict is for the caller as it is, and nothing
// was done; an error is one of the database.
func (s *Store) write(ctx context.Context, conversation string, do func(ctx context.Context, w *writer) (verdict, err error)) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		verdict, err := s.attempt(bounded, do)
		if err == nil {
			return verdict
		}
		if lost(err) {
			s.pool.Reset() // the others will have been lost as well
		}
		if try == tries || bounded.Err() != nil || !again(err) && !pgconn.SafeToRetry(err) {
			return s.fault(ctx, conversation, late(bounded, err))
		}
	}
}

func (s *Store) attempt(ctx context.Context, do func(context.Context, *writer) (verdict, err error)) (verdict, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes it if a transaction is open still
	w := &writer{s, conn}
	verdict, err = do(ctx, w)
	if low := conn.Conn().PgConn(); !low.IsClosed() && low.TxStatus() != 'I' {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(short, "ROLLBACK")
	}
	return verdict, err
}

// begin begins a transaction whose commit waits for the disk, whatever the
// server's default is, and reads the row of its first statement, all in one round.
// READ COMMITTED is what the statements here count on. A program that is stopped
// in the middle keeps others waiting for no more than 5 s; the server ends the
// transaction then.
func (w *writer) begin(ctx context.Context, scan func(pgx.Row) error, sql string, args ...any) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(`SELECT set_config('idle_in_transaction_session_timeout', '5s', true),
		CASE WHEN current_setting('synchronous_commit') <> 'remote_apply' THEN set_config('synchronous_commit', 'on', true) END`)
	b.Queue(w.store.sql(sql), args...).QueryRow(scan)
	return w.conn.SendBatch(ctx, b).Close()
}

// commit runs what is queued and commits, all in one round.
func (w *writer) commit(ctx context.Context, b *pgx.Batch) error {
	b.Queue("COMMIT")
	return w.conn.SendBatch(ctx, b).Close()
}

// row runs a statement and reads its row.
func (w *writer) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return w.conn.QueryRow(ctx, w.store.sql(sql), args...)
}
