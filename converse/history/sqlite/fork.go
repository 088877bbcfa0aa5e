// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
)

// Fork implements [history.Store]. The rows of canisters are copied, and the contents
// over 1 KiB shared.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := history.CheckID(to); err != nil {
		return err
	}
	err := s.ask(ctx, func(w *writer) (verdict, err error) {
		from, info, err := w.info(conversation)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound(conversation), nil
		case err != nil:
			return nil, err
		case length < 0 || length > info.Length:
			return fmt.Errorf("%w: %q has %d canisters and not %d", history.ErrNotFound, conversation, info.Length, length), nil
		}
		switch there, _, err := w.conversation(to); {
		case err != nil:
			return nil, err
		case there != 0:
			return fmt.Errorf("%w: %q", history.ErrExists, to), nil
		}
		return nil, w.fork(from, info, length, to)
	})
	return named(err, conversation)
}

func (w *writer) fork(from int64, info history.Info, length int, to string) error {
	last := ""
	err := w.conn.QueryRowContext(always, "SELECT kind FROM canisters WHERE conversation = ? AND position = ?", from, length-1).Scan(&last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	now := w.store.clock().UnixNano()
	made, err := w.create.ExecContext(always, to, info.Title, row.Fold(info.Title), list(info.Tags), info.Owner, now, now, length, last, info.ID, length)
	if err != nil {
		return err
	}
	key, err := made.LastInsertId()
	if err != nil {
		return err
	}
	copied, err := w.conn.ExecContext(always, `INSERT INTO canisters (conversation, position, id, kind, line, parts, size, sum)
		SELECT ?, position, id, kind, line, parts, size, sum FROM canisters WHERE conversation = ? AND position < ? ORDER BY position`, key, from, length)
	if err != nil {
		return err
	}
	if n, err := copied.RowsAffected(); err != nil || n != int64(length) {
		return errors.Join(err, w.store.corrupt(info.ID, fmt.Errorf("there are %d of the first %d canisters", n, length), "table canisters, conversation %d", from))
	}
	_, err = w.conn.ExecContext(always, `INSERT INTO parts (conversation, position, place, content)
		SELECT ?, position, place, content FROM parts WHERE conversation = ? AND position < ?`, key, from, length)
	return err
}

// Delete implements [history.Store]. The space is reused later; the file does not
// become smaller.
func (s *Store) Delete(ctx context.Context, conversation string, length int) error {
	err := s.ask(ctx, func(w *writer) (verdict, err error) {
		key, have, err := w.conversation(conversation)
		if err != nil || key == 0 {
			return nil, err
		}
		if conflict := history.CheckDelete(conversation, have, length); conflict != nil {
			return conflict, nil
		}
		for _, statement := range []string{
			"DELETE FROM texts WHERE rowid IN (SELECT seq FROM canisters WHERE conversation = ?1 AND seq <= (SELECT upto FROM indexed))",
			"DELETE FROM contents WHERE key IN (SELECT content FROM parts WHERE conversation = ?1) AND NOT EXISTS (SELECT 1 FROM parts WHERE content = key AND conversation <> ?1)",
			"DELETE FROM unindexed WHERE conversation = ?1",
			"DELETE FROM parts WHERE conversation = ?1",
			"DELETE FROM canisters WHERE conversation = ?1",
			"DELETE FROM conversations WHERE key = ?1",
		} {
			if _, err := w.conn.ExecContext(always, statement, key); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return named(err, conversation)
}
