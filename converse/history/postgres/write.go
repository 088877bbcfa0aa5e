// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tries is the maximum number of attempts of an operation that failed without effect.
const tries = 10

// writer is a connection in a transaction.
type writer struct {
	store *Store
	conn  *pgxpool.Conn
}

// write runs do in a transaction, which do must begin with [writer.begin] and end with
// [writer.commit]. If do returns a verdict, nothing was changed, and write returns it
// unchanged; err is an error of the database.
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
			s.pool.Reset() // the other connections are probably lost too
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
	defer conn.Release() // closes it if a transaction is still open
	w := &writer{s, conn}
	verdict, err = do(ctx, w)
	if low := conn.Conn().PgConn(); !low.IsClosed() && low.TxStatus() != 'I' {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(short, "ROLLBACK")
	}
	return verdict, err
}

// begin begins a transaction whose commit waits for the disk, whatever the server's
// default, and reads the row of its first statement, in one round trip. The statements
// here rely on READ COMMITTED. If the program is stopped in the middle of a
// transaction, others wait for at most 5 s; then the server ends the transaction.
func (w *writer) begin(ctx context.Context, scan func(pgx.Row) error, sql string, args ...any) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(`SELECT set_config('idle_in_transaction_session_timeout', '5s', true),
		CASE WHEN current_setting('synchronous_commit') <> 'remote_apply' THEN set_config('synchronous_commit', 'on', true) END`)
	b.Queue(w.store.sql(sql), args...).QueryRow(scan)
	return w.conn.SendBatch(ctx, b).Close()
}

// commit runs the queued statements and commits, in one round trip.
func (w *writer) commit(ctx context.Context, b *pgx.Batch) error {
	b.Queue("COMMIT")
	return w.conn.SendBatch(ctx, b).Close()
}

// row runs a statement and reads its row.
func (w *writer) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return w.conn.QueryRow(ctx, w.store.sql(sql), args...)
}
