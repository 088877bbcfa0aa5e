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

// Read implements [history.Log]. It holds one page of canisters in memory at a time,
// and neither a lock nor a connection while the caller processes a canister. If the
// conversation is deleted meanwhile, the sequence ends with history.ErrNotFound.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return row.Read(after,
		func() error { return s.usable(ctx) },
		func() (row.Extent, error) { return s.extent(ctx, conversation) },
		func(want row.Want) ([]canister.Canister, error) { return s.page(ctx, want) })
}

// extent returns the extent of a conversation; its length is 0 if the conversation does
// not exist.
func (s *Store) extent(ctx context.Context, conversation string) (row.Extent, error) {
	e := row.Extent{ID: conversation}
	rows := 0
	err := s.query(ctx, conversation, func() error {
		return s.read.QueryRowContext(ctx, `SELECT key, length,
			coalesce((SELECT max(position) + 1 FROM canisters WHERE conversation = key), 0)
			FROM conversations WHERE id = ?`, conversation).Scan(&e.Key, &e.Length, &rows)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	if err == nil && rows != e.Length {
		err = s.corrupt(conversation, fmt.Errorf("its length is %d, and there are %d canisters", e.Length, rows), "table conversations, key %d", e.Key)
	}
	return e, err
}

// query calls do, and repeats it while another program holds the file.
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

// page returns the next canisters of a conversation: at least one, or an error and the
// canisters before the failure.
func (s *Store) page(ctx context.Context, want row.Want) (page []canister.Canister, err error) {
	err = s.query(ctx, want.ID, func() error {
		tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		page, err = s.rows(ctx, tx, want)
		return err
	})
	return page, err
}

func (s *Store) rows(ctx context.Context, tx *sql.Tx, want row.Want) (page []canister.Canister, err error) {
	found, err := tx.QueryContext(ctx, `SELECT position, id, line, parts, sum FROM canisters
		WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position`, want.Key, want.At, want.To)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	long := &contents{store: s, want: want}
	defer long.close()
	var line sql.RawBytes // valid until the next row
	size := 0
	for size < want.Bytes && found.Next() {
		var r row.Row
		var position, parts int64 // scanning into an int would convert a text
		if err := found.Scan(&position, &r.ID, &line, &parts, &r.Sum); err != nil {
			return page, err
		}
		if int(position) != want.At+len(page) {
			break
		}
		r.Position, r.Line = int(position), line
		if r.Parts, err = long.of(ctx, tx, r.Position, int(parts)); err != nil {
			return page, err
		}
		c, err := s.canister(want, r)
		if err != nil {
			return page, err
		}
		page = append(page, c)
		size += len(line)
		for _, p := range r.Parts {
			size += len(p.Body)
		}
	}
	if at := want.At + len(page); found.Err() == nil && size < want.Bytes && at < want.To {
		return page, s.missing(ctx, tx, want.Extent, at)
	}
	return page, found.Err()
}

// canister returns the canister of a row.
func (s *Store) canister(want row.Want, r row.Row) (canister.Canister, error) {
	c, err := r.Canister()
	if err != nil && !errors.Is(err, history.ErrNewer) {
		err = s.corrupt(want.ID, err, "table canisters, conversation %d, position %d", want.Key, r.Position)
	}
	return c, err
}

// missing returns the error about a missing row at a position.
func (s *Store) missing(ctx context.Context, tx *sql.Tx, from row.Extent, position int) error {
	there := 0
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM conversations WHERE key = ?", from.Key).Scan(&there); err != nil {
		return err
	}
	if there == 0 {
		return fmt.Errorf("%w any more: %q was deleted while it was read", history.ErrNotFound, from.ID)
	}
	return s.corrupt(from.ID, errors.New("the row is missing"), "table canisters, conversation %d, position %d", from.Key, position)
}

// contents reads the long contents of a page in the order of its rows, in step with
// them.
type contents struct {
	store *Store
	want  row.Want
	found *sql.Rows // nil until first used
}

func (l *contents) close() {
	if l.found != nil {
		l.found.Close()
	}
}

// of returns the next n contents, and checks that they belong to the position.
func (l *contents) of(ctx context.Context, tx *sql.Tx, position, n int) (parts []row.Part, err error) {
	if n > 0 && l.found == nil {
		if l.found, err = tx.QueryContext(ctx, `SELECT position, place, key, hash, body FROM parts JOIN contents ON key = content
			WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position, place`, l.want.Key, l.want.At, l.want.To); err != nil {
			return nil, err
		}
	}
	for len(parts) < n && l.found.Next() {
		var at int
		var key int64
		var hash []byte
		var p row.Part
		if err := l.found.Scan(&at, &p.Place, &key, &hash, &p.Body); err != nil {
			return nil, err
		}
		if p.Hash = sha256.Sum256(p.Body); !bytes.Equal(hash, p.Hash[:]) {
			return nil, l.store.corrupt(l.want.ID, fmt.Errorf("the hash is %x, and it was written with %x", p.Hash, hash), "table contents, key %d", key)
		}
		if at != position {
			position = min(at, position) // the row with too many or too few
			break
		}
		parts = append(parts, p)
	}
	if len(parts) == n {
		return parts, nil
	}
	if err := l.found.Err(); err != nil {
		return nil, err
	}
	return nil, l.store.corrupt(l.want.ID, errors.New("the long contents are not those that it was written with"), "table canisters, conversation %d, position %d", l.want.Key, position)
}
