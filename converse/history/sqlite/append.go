// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
)

// Append implements [history.Log]. Appends that arrive at the same time are committed
// together. Append waits while another program writes, until the context ends.
func (s *Store) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	lines, err := history.Lines(conversation, canisters)
	if err != nil {
		return err
	}
	rows := make([]row.Row, len(lines))
	for i, line := range lines {
		if rows[i], err = row.Of(length+i, canisters[i], line); err != nil {
			return s.fault(err)
		}
	}
	err = s.ask(ctx, func(w *writer) (verdict, err error) {
		key, have, err := w.conversation(conversation)
		if err != nil {
			return nil, err
		}
		todo, verdict := history.CheckAppend(conversation, have, length, canisters, func(place int) (id string, _ error) {
			err = w.identity.QueryRowContext(always, key, place).Scan(&id)
			return id, err
		})
		if errors.Is(err, sql.ErrNoRows) {
			return s.corrupt(conversation, errors.New("a row is missing"), "table canisters, conversation %d", key), nil
		}
		if !todo || err != nil {
			return verdict, err
		}
		return nil, w.append(conversation, key, length, rows)
	})
	return named(err, conversation)
}

// conversation returns the key and the length of a conversation, or 0 and 0 if it does
// not exist.
func (w *writer) conversation(id string) (key int64, length int, err error) {
	err = w.find.QueryRowContext(always, id).Scan(&key, &length)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return key, length, err
}

// append adds rows to the conversation with the given key, or creates the conversation
// if key is 0.
func (w *writer) append(conversation string, key int64, length int, rows []row.Row) error {
	now := w.store.clock().UnixNano()
	last := string(rows[len(rows)-1].Kind)
	if key == 0 {
		made, err := w.create.ExecContext(always, conversation, "", "", "[]", "", now, now, len(rows), last, "", 0)
		if err != nil {
			return err
		}
		if key, err = made.LastInsertId(); err != nil {
			return err
		}
	} else if _, err := w.extend.ExecContext(always, length+len(rows), last, now, key); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := w.insert.ExecContext(always, key, r.Position, r.ID, string(r.Kind), string(r.Line), len(r.Parts), r.Size, r.Sum); err != nil {
			return err
		}
		for _, p := range r.Parts {
			content, err := w.keep(p)
			if err != nil {
				return err
			}
			if _, err := w.part.ExecContext(always, key, r.Position, p.Place, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep stores a long content, unless it is in its table already, and returns its key.
// It overwrites a damaged one.
func (w *writer) keep(p row.Part) (key int64, err error) {
	var whole bool
	body := string(p.Body)
	err = w.contentOf.QueryRowContext(always, body, p.Hash[:]).Scan(&key, &whole)
	switch {
	case err == nil && whole:
		return key, nil
	case err == nil:
		_, err = w.conn.ExecContext(always, "UPDATE contents SET body = ? WHERE key = ?", body, key)
		return key, err
	case !errors.Is(err, sql.ErrNoRows):
		return 0, err
	}
	made, err := w.content.ExecContext(always, p.Hash[:], body)
	if err != nil {
		return 0, err
	}
	return made.LastInsertId()
}

// named sets the conversation of a CorruptError that has none.
func named(err error, conversation string) error {
	if corrupt, ok := errors.AsType[*history.CorruptError](err); ok && corrupt.Conversation == "" {
		corrupt.Conversation = conversation
	}
	return err
}
