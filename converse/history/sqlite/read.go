// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// Page implements [sqlstore.DB].
func (d database) Page(ctx context.Context, want sqlstore.Want) (page []canister.Canister, err error) {
	s := d.store
	err = s.query(ctx, want.ID, func() error {
		lines, err := s.statements.prepare(ctx, selectLines)
		if err != nil {
			return err
		}
		parts, err := s.statements.prepare(ctx, selectParts)
		if err != nil {
			return err
		}
		tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		long := &contents{store: s, want: want, query: tx.StmtContext(ctx, parts)}
		defer long.close()
		page, err = s.rows(ctx, tx.StmtContext(ctx, lines), long)
		return err
	})
	return page, err
}

// The statements of a page: its rows, and their long contents.
const (
	selectLines = `SELECT position, id, line, parts, sum FROM canisters
		WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position`
	selectParts = `SELECT position, place, key, hash, body FROM parts JOIN contents ON key = content
		WHERE conversation = ? AND position >= ? AND position < ? ORDER BY position, place`
)

func (s *Store) rows(ctx context.Context, lines *sql.Stmt, long *contents) (page []canister.Canister, err error) {
	want := long.want
	found, err := lines.QueryContext(ctx, want.Key, want.At, want.To)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var line sql.RawBytes // valid until the next row
	size := 0
	for size < want.Bytes && found.Next() {
		var r sqlstore.Row
		var position, parts int64 // scanning into an int would convert a text
		if err := found.Scan(&position, &r.ID, &line, &parts, &r.Sum); err != nil {
			return page, err
		}
		if int(position) != want.At+len(page) {
			break
		}
		r.Position, r.Line = int(position), line
		if r.Parts, err = long.of(ctx, r.Position, int(parts)); err != nil {
			return page, err
		}
		c, err := s.common.Canister(want, r)
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
		return page, sqlstore.ErrGap
	}
	return page, found.Err()
}

// contents reads the long contents of a page in the order of its rows, in step with
// them.
type contents struct {
	store *Store
	want  sqlstore.Want
	query *sql.Stmt
	found *sql.Rows // nil until first used
}

func (l *contents) close() {
	if l.found != nil {
		l.found.Close()
	}
}

// of returns the next n contents, and checks that they belong to the position.
func (l *contents) of(ctx context.Context, position, n int) (parts []sqlstore.Part, err error) {
	if n > 0 && l.found == nil {
		if l.found, err = l.query.QueryContext(ctx, l.want.Key, l.want.At, l.want.To); err != nil {
			return nil, err
		}
	}
	for len(parts) < n && l.found.Next() {
		var at int
		var key int64
		var hash []byte
		var p sqlstore.Part
		if err := l.found.Scan(&at, &p.Index, &key, &hash, &p.Body); err != nil {
			return nil, err
		}
		if p.Hash = sha256.Sum256(p.Body); !bytes.Equal(hash, p.Hash[:]) {
			return nil, l.store.common.Corrupt(l.want.ID, fmt.Errorf("the hash is %x; it was %x when written", p.Hash, hash), "table contents, key %d", key)
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
	return nil, l.store.common.Corrupt(l.want.ID, errors.New("the long contents have changed since it was written"), "table canisters, conversation %d, position %d", l.want.Key, position)
}
