// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
)

// A page is what is read at a time: so many canisters, or the first with which
// it has so many bytes.
const (
	pageRows  = 200
	pageBytes = 1 << 20
)

// Read implements [history.Log]. It holds a page of canisters in memory at a
// time, and nothing of the database while the loop looks at one. If the
// conversation is deleted meanwhile, the sequence ends with history.ErrNotFound.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		from, err := s.extent(ctx, conversation)
		if err != nil {
			yield(nil, err)
			return
		}
		for at := max(after, 0); at < from.length; {
			rows, err := s.page(ctx, from, at)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range rows {
				c, err := s.open(ctx, from, r)
				if !yield(c, err) || err != nil {
					return
				}
			}
			at += len(rows)
		}
	}
}

// open returns the canister of a row.
func (s *Store) open(ctx context.Context, from extent, r row.Row) (canister.Canister, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	c, err := r.Canister()
	if err != nil && !errors.Is(err, history.ErrNewer) {
		err = s.corrupt(from.id, err, "table canisters, conversation %d, position %d", from.key, r.Position)
	}
	return c, err
}

// extent is a conversation as it is when a loop over it begins.
type extent struct {
	id     string
	key    int64
	length int
}

// extent returns that of a conversation; its length is 0 if that does not exist.
func (s *Store) extent(ctx context.Context, conversation string) (extent, error) {
	e := extent{id: conversation}
	rows := 0
	err := s.query(ctx, conversation, func() error {
		return s.read.QueryRowContext(ctx, `SELECT key, length,
			coalesce((SELECT max(position) + 1 FROM canisters WHERE conversation = key), 0)
			FROM conversations WHERE id = ?`, conversation).Scan(&e.key, &e.length, &rows)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	if err == nil && rows != e.length {
		err = s.corrupt(conversation, fmt.Errorf("its length is %d, and there are %d canisters", e.length, rows), "table conversations, key %d", e.key)
	}
	return e, err
}

// query runs do until no other program is in its way.
func (s *Store) query(ctx context.Context, conversation string, do func() error) error {
	err := s.usable(ctx)
	if err == nil {
		err = patiently(ctx, do)
	}
	switch {
	case err == nil, errors.Is(err, sql.ErrNoRows):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.faultOf(conversation, err)
}

// page returns the next rows of a conversation, from the position at on: at
// least one.
func (s *Store) page(ctx context.Context, from extent, at int) (rows []row.Row, err error) {
	err = s.query(ctx, from.id, func() error {
		tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		rows, err = s.rows(ctx, tx, from, at)
		return err
	})
	return rows, err
}

func (s *Store) rows(ctx context.Context, tx *sql.Tx, from extent, at int) ([]row.Row, error) {
	found, err := tx.QueryContext(ctx, `SELECT position, id, line, parts, size, sum FROM canisters
		WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position LIMIT ?`, from.key, at, from.length, pageRows)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []row.Row
	parts, size := 0, 0
	for size < pageBytes && found.Next() {
		var r row.Row
		var own int
		if err := found.Scan(&r.Position, &r.ID, &r.Line, &own, &r.Size, &r.Sum); err != nil {
			return nil, err
		}
		if r.Position != at+len(rows) {
			return nil, s.missing(ctx, tx, from, at+len(rows))
		}
		rows = append(rows, r)
		parts += own
		size += r.Size
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, s.missing(ctx, tx, from, at)
	}
	if parts > 0 {
		err = s.addParts(ctx, tx, from, rows)
	}
	return rows, err
}

// missing is the error about a position at which there should be a row.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, from extent, position int) error {
	there := 0
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM conversations WHERE key = ?", from.key).Scan(&there); err != nil {
		return err
	}
	if there == 0 {
		return fmt.Errorf("%w any more: %q was deleted while it was read", history.ErrNotFound, from.id)
	}
	return s.corrupt(from.id, errors.New("the row is missing"), "table canisters, conversation %d, position %d", from.key, position)
}

// addParts gives the rows, which follow each other, their long contents.
func (s *Store) addParts(ctx context.Context, tx *sql.Tx, from extent, rows []row.Row) error {
	first := rows[0].Position
	found, err := tx.QueryContext(ctx, `SELECT position, place, key, hash, body FROM parts JOIN contents ON key = content
		WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position, place`, from.key, first, first+len(rows))
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var position int
		var key int64
		var hash []byte
		var p row.Part
		if err := found.Scan(&position, &p.Place, &key, &hash, &p.Body); err != nil {
			return err
		}
		if p.Hash = sha256.Sum256(p.Body); !bytes.Equal(hash, p.Hash[:]) {
			return s.corrupt(from.id, fmt.Errorf("the hash is %x, and it was written with %x", p.Hash, hash), "table contents, key %d", key)
		}
		r := &rows[position-first]
		r.Parts = append(r.Parts, p)
	}
	return found.Err()
}
