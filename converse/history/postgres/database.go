// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/records"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Read implements [history.Log]. It holds one page of canisters in memory at a time,
// and neither a connection nor a lock while the caller processes a canister: the
// canisters that existed when the loop began never change. If the conversation is
// deleted meanwhile, the sequence ends with history.ErrNotFound. Read reconnects after
// a lost connection.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return s.common.Read(ctx, conversation, after)
}

// Append implements [history.Log]. It waits while another writer appends to the same
// conversation. After a connection error it is unknown whether the canisters were
// added: as always, it is safe to repeat the append.
func (s *Store) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	grown, err := s.common.Append(ctx, conversation, length, canisters)
	if grown {
		s.notifier.schedule(conversation)
	}
	return err
}

// Fork implements [history.Store]. The rows of canisters are copied within the server,
// and the contents over 1 KiB shared. Appends to the conversation can continue
// meanwhile.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	err := s.common.Fork(ctx, conversation, length, to)
	if err == nil {
		s.notifier.schedule(to)
	}
	return err
}

// Delete implements [history.Store]. The space is reused once the server has vacuumed
// the tables.
func (s *Store) Delete(ctx context.Context, conversation string, length int) error {
	err := s.common.Delete(ctx, conversation, length)
	if err == nil {
		s.notifier.schedule(conversation)
	}
	return err
}

// beforeDelete makes appends of the same contents, and deletions of other conversations
// that use them, wait, so that the last deletion removes them.
var beforeDelete = []string{
	"SELECT FROM @.contents WHERE key IN (SELECT content FROM @.parts WHERE conversation = $1) ORDER BY hash FOR UPDATE",
}

// List implements [history.Store]. It loads the complete list, without any canisters,
// before the loop begins, and does not update it afterwards.
func (s *Store) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return s.common.List(ctx, filter)
}

// Info implements [history.Store].
func (s *Store) Info(ctx context.Context, conversation string) (history.Info, error) {
	return s.common.Info(ctx, conversation)
}

// Describe implements [history.Store].
func (s *Store) Describe(ctx context.Context, conversation string, change history.Change) error {
	return s.common.Describe(ctx, conversation, change)
}

// Ledger returns the ledger in the same schema, which is shared by all programs that
// use the schema. It is closed with the store.
func (s *Store) Ledger() budget.Ledger { return sqlstore.Ledger{Store: &s.common} }

// Records returns the records in the same schema that belong to no conversation, such as the
// logins of a gateway. They are closed with the store.
func (s *Store) Records() records.Table { return sqlstore.Records{Store: &s.common} }

// database implements [sqlstore.DB].
type database struct{ store *Store }

// Query implements [sqlstore.DB].
func (d database) Query(ctx context.Context, conversation string, do func(context.Context, sqlstore.Queryer) error) error {
	return d.store.query(ctx, conversation, func(ctx context.Context) error { return do(ctx, queryer{d.store, d.store.pool}) })
}

// query runs a read-only operation, and repeats it if the connection is lost.
func (s *Store) query(ctx context.Context, conversation string, do func(context.Context) error) error {
	if err := s.common.Usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		err := do(bounded)
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if !lost(err) || try == 3 || bounded.Err() != nil {
			return s.explain(ctx, conversation, orContextError(bounded, err))
		}
		s.pool.Reset() // the other connections are probably lost too
	}
}

// tries is the maximum number of attempts of an operation that failed without effect.
const tries = 10

// Write implements [sqlstore.DB].
func (d database) Write(ctx context.Context, conversation string, do func(context.Context, sqlstore.Tx) (verdict, err error)) error {
	s := d.store
	if err := s.common.Usable(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		verdict, closed, err := s.attempt(bounded, do)
		if err == nil {
			return verdict
		}
		if closed && lost(err) {
			s.pool.Reset() // the other connections are probably lost too
		}
		if try == tries || bounded.Err() != nil || !retryable(err) && !pgconn.SafeToRetry(err) {
			return s.explain(ctx, conversation, orContextError(bounded, err))
		}
	}
}

// attempt runs a write once. It also reports whether the write had a connection, and this was closed: it is not if
// a deadline passes before a statement, or the server answers that it has cancelled one that waited for a lock.
func (s *Store) attempt(ctx context.Context, do func(context.Context, sqlstore.Tx) (verdict, err error)) (verdict error, closed bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release() // closes it if a transaction is still open
	verdict, err = do(ctx, &writer{queryer: queryer{s, conn}, conn: conn})
	closed = conn.Conn().IsClosed()
	if low := conn.Conn().PgConn(); !low.IsClosed() && low.TxStatus() != 'I' {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(short, "ROLLBACK")
	}
	return verdict, closed, err
}

// ScanInfo implements [sqlstore.DB].
func (d database) ScanInfo(row sqlstore.Scanner) (key int64, info history.Info, err error) {
	err = row.Scan(&key, &info.ID, &info.Title, &info.Tags, &info.Owner, &info.Created, &info.Changed, &info.Length, &info.Last, &info.Parent, &info.ParentLength)
	if len(info.Tags) == 0 {
		info.Tags = nil
	}
	return key, info, err
}

// Tags implements [sqlstore.DB].
func (d database) Tags(tags []string) any { return append([]string{}, tags...) }

// Time implements [sqlstore.DB].
func (d database) Time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// Now implements [sqlstore.DB].
func (d database) Now(ctx context.Context) (now time.Time, err error) {
	err = d.Query(ctx, "", func(ctx context.Context, q sqlstore.Queryer) error {
		return q.Row(ctx, "SELECT @now").Scan(&now)
	})
	return now, err
}
