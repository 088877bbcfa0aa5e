// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Read implements [history.Log]. It holds one page of canisters in memory at a time,
// and neither a connection nor a lock while the caller processes a canister: the
// canisters that existed when the loop began never change. If the conversation is
// deleted meanwhile, the sequence ends with history.ErrNotFound. Read reconnects after
// a lost connection.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return row.Read(after,
		func() error { return s.usable(ctx) },
		func() (row.Extent, error) { return s.extent(ctx, conversation) },
		func(want row.Want) ([]canister.Canister, error) { return s.page(ctx, want) })
}

// query runs a read-only operation, and repeats it if the connection is lost.
func (s *Store) query(ctx context.Context, conversation string, do func(context.Context) error) error {
	if err := s.usable(ctx); err != nil {
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
			return s.fault(ctx, conversation, late(bounded, err))
		}
		s.pool.Reset() // the other connections are probably lost too
	}
}

// extent returns the extent of a conversation; its length is 0 if the conversation does
// not exist.
func (s *Store) extent(ctx context.Context, conversation string) (row.Extent, error) {
	e := row.Extent{ID: conversation}
	rows := 0
	err := s.query(ctx, conversation, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql(`SELECT key, length,
			coalesce((SELECT max(position) + 1 FROM @.canisters WHERE conversation = key), 0)
			FROM @.conversations WHERE id = $1`), conversation).Scan(&e.Key, &e.Length, &rows)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return e, nil
	}
	if err == nil && rows != e.Length {
		err = s.corrupt(conversation, fmt.Errorf("its length is %d, and there are %d canisters", e.Length, rows), "table conversations, key %d", e.Key)
	}
	return e, err
}

// errGap says that a row is missing.
var errGap = errors.New("the row is missing")

// page returns the next canisters of a conversation: at least one, or an error and the
// canisters before the failure.
func (s *Store) page(ctx context.Context, want row.Want) (page []canister.Canister, err error) {
	err = s.query(ctx, want.ID, func(ctx context.Context) error {
		page, err = s.rows(ctx, want)
		return err
	})
	if errors.Is(err, errGap) {
		err = s.missing(ctx, want.Extent, want.At+len(page))
	}
	return page, err
}

// rows reads a page in one statement, so that the result is consistent. The server does
// not send rows after the page. Each long content is a bytea: its place as 4 bytes, its
// hash, and its line.
func (s *Store) rows(ctx context.Context, want row.Want) (page []canister.Canister, err error) {
	found, err := s.pool.Query(ctx, s.sql(`SELECT position, id, line, parts, size, sum,
			CASE WHEN parts > 0 THEN (SELECT array_agg(int4send(place) || hash || convert_to(body, 'UTF8') ORDER BY place)
				FROM @.parts p JOIN @.contents ON key = content WHERE p.conversation = $1 AND p.position = page.position) END
		FROM (SELECT position, id, line, parts, size, sum, sum(size) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) - size AS before
			FROM @.canisters WHERE conversation = $1 AND position >= $2 AND position < $3) AS page
		WHERE before < $4 ORDER BY position`), want.Key, want.At, want.To, want.Bytes)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	size := 0
	for found.Next() {
		var r row.Row
		var id, line pgtype.DriverBytes // valid until the next row
		var parts int
		var long [][]byte
		if err := found.Scan(&r.Position, &id, &line, &parts, &r.Size, &r.Sum, &long); err != nil {
			return page, err
		}
		if r.Position != want.At+len(page) {
			return page, errGap
		}
		if r.Parts, err = s.parts(want, r.Position, parts, long); err != nil {
			return page, err
		}
		r.ID, r.Line = string(id), line
		c, err := s.canister(want, r)
		if err != nil {
			return page, err
		}
		page = append(page, c)
		size += r.Size
	}
	if found.Err() == nil && size < want.Bytes && want.At+len(page) < want.To {
		return page, errGap
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

// parts returns the long contents of a row, which must be n.
func (s *Store) parts(want row.Want, position, n int, long [][]byte) (parts []row.Part, err error) {
	for _, text := range long {
		const head = 4 + sha256.Size
		if len(text) < head {
			return nil, s.corrupt(want.ID, errors.New("the hash of a long content is too short"), "table parts, conversation %d, position %d", want.Key, position)
		}
		p := row.Part{Place: int(binary.BigEndian.Uint32(text)), Hash: sha256.Sum256(text[head:]), Body: text[head:]}
		if hash := text[4:head]; !bytes.Equal(p.Hash[:], hash) {
			return nil, s.corrupt(want.ID, fmt.Errorf("the hash of a long content is %x, and it was written with %x", p.Hash, hash), "table contents, hash %x", hash)
		}
		parts = append(parts, p)
	}
	if len(parts) != n {
		return nil, s.corrupt(want.ID, fmt.Errorf("it has %d long contents, and %d of them are there", n, len(parts)), "table parts, conversation %d, position %d", want.Key, position)
	}
	return parts, nil
}

// missing returns the error about a missing row at a position.
func (s *Store) missing(ctx context.Context, from row.Extent, position int) error {
	var there bool
	err := s.query(ctx, from.ID, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql("SELECT EXISTS (SELECT FROM @.conversations WHERE key = $1)"), from.Key).Scan(&there)
	})
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%w any more: %q was deleted while it was read", history.ErrNotFound, from.ID)
	}
	return s.corrupt(from.ID, errGap, "table canisters, conversation %d, position %d", from.Key, position)
}
