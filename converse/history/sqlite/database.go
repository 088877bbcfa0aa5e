// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/records"
)

// Read implements [history.Log]. It holds one page of canisters in memory at a time,
// and neither a lock nor a connection while the caller processes a canister. If the
// conversation is deleted meanwhile, the sequence ends with history.ErrNotFound.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return s.common.Read(ctx, conversation, after)
}

// Append implements [history.Log]. Appends that arrive at the same time are committed
// together. Append waits while another program writes, until the context ends.
func (s *Store) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	_, err := s.common.Append(ctx, conversation, length, canisters)
	return err
}

// Fork implements [history.Store]. The rows of canisters are copied, and the contents
// over 1 KiB shared.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	return s.common.Fork(ctx, conversation, length, to)
}

// Delete implements [history.Store]. The space is reused later; the file does not
// become smaller.
func (s *Store) Delete(ctx context.Context, conversation string, length int) error {
	return s.common.Delete(ctx, conversation, length)
}

// beforeDelete removes a conversation from the index of the search.
var beforeDelete = []string{
	"DELETE FROM texts WHERE rowid IN (SELECT seq FROM canisters WHERE conversation = $1 AND seq <= (SELECT upto FROM indexed))",
	"DELETE FROM unindexed WHERE conversation = $1",
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

// Ledger returns the ledger in the same file, which is shared by all programs that use
// the file. It is closed with the store.
func (s *Store) Ledger() budget.Ledger { return sqlstore.Ledger{Store: &s.common} }

// Records returns the records in the same file that belong to no conversation, such as the
// logins of a gateway. They are closed with the store.
func (s *Store) Records() records.Table { return sqlstore.Records{Store: &s.common} }

// database implements [sqlstore.DB].
type database struct{ store *Store }

// Query implements [sqlstore.DB].
func (d database) Query(ctx context.Context, conversation string, do func(context.Context, sqlstore.Queryer) error) error {
	return d.store.query(ctx, conversation, func() error { return do(ctx, preparedReader{reader{d.store.read}, d.store.statements}) })
}

// Write implements [sqlstore.DB].
func (d database) Write(ctx context.Context, _ string, do func(context.Context, sqlstore.Tx) (verdict, err error)) error {
	return d.store.submit(ctx, func(w *writer) (verdict, err error) { return do(background, w) })
}

// query calls do, and repeats it while another program holds the file.
func (s *Store) query(ctx context.Context, conversation string, do func() error) error {
	err := s.common.Usable(ctx)
	if err == nil {
		err = retryWhileBusy(ctx, do)
	}
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.explain(conversation, err)
}

// ScanInfo implements [sqlstore.DB]. Times are in nanoseconds, and tags a JSON array.
func (d database) ScanInfo(row sqlstore.Scanner) (key int64, info history.Info, err error) {
	var tags string
	var created, changed int64
	err = row.Scan(&key, &info.ID, &info.Title, &tags, &info.Owner, &created, &changed, &info.Length, &info.Last, &info.Parent, &info.ParentLength)
	if err != nil {
		return 0, info, err
	}
	info.Created, info.Changed = time.Unix(0, created), time.Unix(0, changed)
	if err := json.Unmarshal([]byte(tags), &info.Tags); err != nil {
		return 0, info, &history.CorruptError{Conversation: info.ID, Location: fmt.Sprintf("table conversations, key %d: tags", key), Err: err}
	}
	if len(info.Tags) == 0 {
		info.Tags = nil
	}
	return key, info, nil
}

// Tags implements [sqlstore.DB].
func (d database) Tags(tags []string) any {
	if len(tags) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(tags) // strings can always be encoded
	return string(text)
}

// Time implements [sqlstore.DB]. The ledger has microseconds.
func (d database) Time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Now implements [sqlstore.DB].
func (d database) Now(context.Context) (time.Time, error) { return d.store.clock(), nil }
