// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
	"github.com/jackc/pgx/v5"
)

// A page is what is read at a time: so many canisters, or the first with which
// it has so many bytes.
const (
	pageRows  = 200
	pageBytes = 1 << 20
)

// Read implements [history.Log]. It holds a page of canisters in memory at a
// time, and neither a connection nor a lock while the loop looks at one: what
// was there when the loop began never changes. If the conversation is deleted
// meanwhile, the sequence ends with history.ErrNotFound. A connection that is
// lost is tried again.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		from, err := s.extent(ctx, conversation)
		if err != nil {
			yield(nil, err)
			return
		}
		for at := max(after, 0); at < from.length; {
			page, err := s.page(ctx, from, at)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page {
				c, err := s.open(ctx, from, r)
				if !yield(c, err) || err != nil {
					return
				}
			}
			at += len(page)
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

// query does something that changes nothing, and does it again if the
// connection is lost.
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
		s.pool.Reset() // the others will have been lost as well
	}
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
	err := s.query(ctx, conversation, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql(`SELECT key, length,
			coalesce((SELECT max(position) + 1 FROM @.canisters WHERE conversation = key), 0)
			FROM @.conversations WHERE id = $1`), conversation).Scan(&e.key, &e.length, &rows)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return e, nil
	}
	if err == nil && rows != e.length {
		err = s.corrupt(conversation, fmt.Errorf("its length is %d, and there are %d canisters", e.length, rows), "table conversations, key %d", e.key)
	}
	return e, err
}

// page returns the next rows of a conversation, from the position at on: at
// least one.
func (s *Store) page(ctx context.Context, from extent, at int) (page []row.Row, err error) {
	err = s.query(ctx, from.id, func(ctx context.Context) error {
		page, err = s.rows(ctx, from, at)
		return err
	})
	if err == nil && (len(page) == 0 || page[len(page)-1].Position != at+len(page)-1) {
		return nil, s.missing(ctx, from, at, page)
	}
	return page, err
}

// rows is one statement, so that all that it returns is of one moment. The rows
// behind a page are not sent at all.
func (s *Store) rows(ctx context.Context, from extent, at int) (page []row.Row, err error) {
	found, err := s.pool.Query(ctx, s.sql(`SELECT position, id, line, parts, size, sum, places, hashes, bodies
		FROM (SELECT *, sum(size) OVER (ORDER BY position) - size AS before
			FROM (SELECT position, id, line, parts, size, sum FROM @.canisters
				WHERE conversation = $1 AND position >= $2 AND position < $3 ORDER BY position LIMIT $4) AS next) AS page
		LEFT JOIN LATERAL (SELECT array_agg(place ORDER BY place) AS places, array_agg(hash ORDER BY place) AS hashes, array_agg(body ORDER BY place) AS bodies
			FROM @.parts p JOIN @.contents ON key = content
			WHERE page.parts > 0 AND p.conversation = $1 AND p.position = page.position) AS long ON true
		WHERE before < $5 ORDER BY position`), from.key, at, from.length, pageRows, pageBytes)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var r row.Row
		var id []byte
		var parts int
		var places []int
		var hashes [][]byte
		var bodies []string
		if err := found.Scan(&r.Position, &id, &r.Line, &parts, &r.Size, &r.Sum, &places, &hashes, &bodies); err != nil {
			return nil, err
		}
		r.ID = string(id)
		for i, body := range bodies {
			p := row.Part{Place: places[i], Hash: sha256.Sum256([]byte(body)), Body: []byte(body)}
			if !bytes.Equal(p.Hash[:], hashes[i]) {
				return nil, s.corrupt(from.id, fmt.Errorf("the hash of a long content is %x, and it was written with %x", p.Hash, hashes[i]), "table contents, hash %x", hashes[i])
			}
			r.Parts = append(r.Parts, p)
		}
		if parts != len(r.Parts) {
			return nil, s.corrupt(from.id, fmt.Errorf("it has %d long contents, and %d of them are there", parts, len(r.Parts)), "table parts, conversation %d, position %d", from.key, r.Position)
		}
		page = append(page, r)
	}
	return page, found.Err()
}

// missing is the error about a page, which begins at a position, that lacks a row.
func (s *Store) missing(ctx context.Context, from extent, at int, page []row.Row) error {
	for _, r := range page {
		if r.Position != at {
			break
		}
		at++
	}
	var there bool
	err := s.query(ctx, from.id, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql("SELECT EXISTS (SELECT FROM @.conversations WHERE key = $1)"), from.key).Scan(&there)
	})
	switch {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%w any more: %q was deleted while it was read", history.ErrNotFound, from.id)
	}
	return s.corrupt(from.id, errors.New("the row is missing"), "table canisters, conversation %d, position %d", from.key, at)
}
