// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5/pgtype"
)

// Page implements [sqlstore.DB].
func (d database) Page(ctx context.Context, want sqlstore.Want) (page []canister.Canister, err error) {
	err = d.store.query(ctx, want.ID, func(ctx context.Context) error {
		page, err = d.store.rows(ctx, want)
		return err
	})
	return page, err
}

// rows reads a page in one statement, so that the result is consistent. The server does
// not send rows after the page. Each long content is a bytea: its index as 4 bytes, its
// hash, and its line.
func (s *Store) rows(ctx context.Context, want sqlstore.Want) (page []canister.Canister, err error) {
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
		var r sqlstore.Row
		var id, line pgtype.DriverBytes // valid until the next row
		var parts int
		var long [][]byte
		if err := found.Scan(&r.Position, &id, &line, &parts, &r.Size, &r.Sum, &long); err != nil {
			return page, err
		}
		if r.Position != want.At+len(page) {
			return page, sqlstore.ErrGap
		}
		if r.Parts, err = s.parts(want, r.Position, parts, long); err != nil {
			return page, err
		}
		r.ID, r.Line = string(id), line
		c, err := s.common.Canister(want, r)
		if err != nil {
			return page, err
		}
		page = append(page, c)
		size += r.Size
	}
	if found.Err() == nil && size < want.Bytes && want.At+len(page) < want.To {
		return page, sqlstore.ErrGap
	}
	return page, found.Err()
}

// parts returns the long contents of a row, which must be n.
func (s *Store) parts(want sqlstore.Want, position, n int, long [][]byte) (parts []sqlstore.Part, err error) {
	for _, text := range long {
		const head = 4 + sha256.Size
		if len(text) < head {
			return nil, s.common.Corrupt(want.ID, errors.New("the hash of a long content is too short"), "table parts, conversation %d, position %d", want.Key, position)
		}
		p := sqlstore.Part{Index: int(binary.BigEndian.Uint32(text)), Hash: sha256.Sum256(text[head:]), Body: text[head:]}
		if hash := text[4:head]; !bytes.Equal(p.Hash[:], hash) {
			return nil, s.common.Corrupt(want.ID, fmt.Errorf("the hash of a long content is %x; it was %x when written", p.Hash, hash), "table contents, hash %x", hash)
		}
		parts = append(parts, p)
	}
	if len(parts) != n {
		return nil, s.common.Corrupt(want.ID, fmt.Errorf("it has %d long contents, but only %d of them exist", n, len(parts)), "table parts, conversation %d, position %d", want.Key, position)
	}
	return parts, nil
}
