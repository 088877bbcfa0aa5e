// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
	"github.com/jackc/pgx/v5"
)

// Fork implements [history.Store]. The rows of canisters are copied within the server,
// and the contents over 1 KiB shared. Appends to the conversation can continue
// meanwhile.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := history.CheckID(to); err != nil {
		return err
	}
	err := s.write(ctx, conversation, func(ctx context.Context, w *writer) (verdict, err error) {
		from, info, err := w.info(ctx, conversation, "FOR KEY SHARE") // prevents deletion
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return notFound(conversation), nil
		case err != nil:
			return nil, err
		case length < 0 || length > info.Length:
			return fmt.Errorf("%w: %q has %d canisters and not %d", history.ErrNotFound, conversation, info.Length, length), nil
		}
		key, err := w.create(ctx, from, info, length, to)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: %q", history.ErrExists, to), nil
		}
		if err != nil {
			return nil, err
		}
		return nil, w.copy(ctx, from, info.ID, length, key)
	})
	if err == nil {
		s.bell.ring(to)
	}
	return err
}

// create creates the conversation of a fork and returns its key; the error is
// pgx.ErrNoRows if the conversation exists.
func (w *writer) create(ctx context.Context, from int64, info history.Info, length int, to string) (key int64, err error) {
	err = w.row(ctx, `INSERT INTO @.conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
		SELECT $2, title, $3, tags, owner, clock_timestamp(), clock_timestamp(), $4,
			coalesce((SELECT kind FROM @.canisters WHERE conversation = $1 AND position = $4 - 1), ''), id, $4
		FROM @.conversations WHERE key = $1
		ON CONFLICT (id) DO NOTHING RETURNING key`, from, to, row.Fold(info.Title), length).Scan(&key)
	return key, err
}

// copy copies the first canisters of a conversation to the one with the given key.
func (w *writer) copy(ctx context.Context, from int64, conversation string, length int, key int64) error {
	copied, err := w.conn.Exec(ctx, w.store.sql(`INSERT INTO @.canisters (conversation, position, id, kind, line, folded, parts, size, sum)
		SELECT $2, position, id, kind, line, folded, parts, size, sum FROM @.canisters WHERE conversation = $1 AND position < $3 ORDER BY position`), from, key, length)
	if err == nil && copied.RowsAffected() != int64(length) {
		err = w.store.corrupt(conversation, fmt.Errorf("there are %d of the first %d canisters", copied.RowsAffected(), length), "table canisters, conversation %d", from)
	}
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(w.store.sql(`INSERT INTO @.parts (conversation, position, place, content)
		SELECT $2, position, place, content FROM @.parts WHERE conversation = $1 AND position < $3`), from, key, length)
	return w.commit(ctx, b)
}

// Delete implements [history.Store]. The space is reused once the server has vacuumed
// the tables.
func (s *Store) Delete(ctx context.Context, conversation string, length int) error {
	err := s.write(ctx, conversation, func(ctx context.Context, w *writer) (verdict, err error) {
		var key int64
		var have int
		err = w.begin(ctx, func(found pgx.Row) error { return found.Scan(&key, &have) }, "SELECT key, length FROM @.conversations WHERE id = $1 FOR UPDATE", conversation)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if conflict := history.CheckDelete(conversation, have, length); conflict != nil {
			return conflict, nil
		}
		b := &pgx.Batch{}
		// From here on, appends of these contents and deletions of other conversations
		// that use them wait, so that the last deletion removes them.
		b.Queue(w.store.sql("SELECT FROM @.contents WHERE key IN (SELECT content FROM @.parts WHERE conversation = $1) ORDER BY hash FOR UPDATE"), key)
		b.Queue(w.store.sql(`DELETE FROM @.contents c WHERE key IN (SELECT content FROM @.parts WHERE conversation = $1)
			AND NOT EXISTS (SELECT FROM @.parts WHERE content = c.key AND conversation <> $1)`), key)
		for _, table := range []string{"@.parts WHERE conversation", "@.canisters WHERE conversation", "@.conversations WHERE key"} {
			b.Queue(w.store.sql("DELETE FROM "+table+" = $1"), key)
		}
		return nil, w.commit(ctx, b)
	})
	if err == nil {
		s.bell.ring(conversation)
	}
	return err
}
