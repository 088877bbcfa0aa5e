// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5"
)

// Known implements [sqlstore.Tx]: the statement that locks a conversation also begins the transaction.
func (w *writer) Known(string) (e sqlstore.Extent, ok bool) { return e, false }

// Forget implements [sqlstore.Tx].
func (w *writer) Forget(string) {}

// Insert implements [sqlstore.Tx].
func (w *writer) Insert(ctx context.Context, e sqlstore.Extent, rows []sqlstore.Row) error {
	contents, err := w.keepContents(ctx, rows)
	if err != nil {
		return err
	}
	for chunk := range chunks(rows) {
		w.insert(e.Key, chunk, contents)
	}
	return nil
}

// chunks divides rows for insertion: each statement inserts up to 1,000, or fewer if
// they reach 8 MiB.
func chunks(rows []sqlstore.Row) func(yield func([]sqlstore.Row) bool) {
	return func(yield func([]sqlstore.Row) bool) {
		from, size := 0, 0
		for i, r := range rows {
			size += r.Size
			if i+1-from == 1000 || size >= 8<<20 || i+1 == len(rows) {
				if !yield(rows[from : i+1]) {
					return
				}
				from, size = i+1, 0
			}
		}
	}
}

// insert queues the rows of canisters and of their long contents; contents has the keys
// of the long contents by hash.
func (w *writer) insert(key int64, rows []sqlstore.Row, contents map[string]int64) {
	n := len(rows)
	positions, parts, sizes := make([]int, n), make([]int, n), make([]int, n)
	ids, kinds, lines, folded, sums := make([][]byte, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	var at, places []int
	var held []int64
	for i, r := range rows {
		positions[i], ids[i], kinds[i], lines[i] = r.Position, []byte(r.ID), string(r.Kind), string(r.Line)
		folded[i], parts[i], sizes[i], sums[i] = r.Folded, len(r.Parts), r.Size, r.Sum
		for _, p := range r.Parts {
			at, places, held = append(at, r.Position), append(places, p.Index), append(held, contents[string(p.Hash[:])])
		}
	}
	w.queued.Queue(w.store.sql(`INSERT INTO @.canisters (conversation, position, id, kind, line, folded, parts, size, sum)
		SELECT $1, * FROM unnest($2::int[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::bigint[])`),
		key, positions, ids, kinds, lines, folded, parts, sizes, sums)
	if len(at) > 0 {
		w.queued.Queue(w.store.sql("INSERT INTO @.parts (conversation, position, place, content) SELECT $1, * FROM unnest($2::int[], $3::int[], $4::bigint[])"),
			key, at, places, held)
	}
}

// keepContents stores the long contents and returns their keys by hash. It locks them until the
// transaction ends, so that a Delete waits. All transactions lock in the order of the
// hashes, to prevent deadlocks.
func (w *writer) keepContents(ctx context.Context, rows []sqlstore.Row) (map[string]int64, error) {
	type content struct {
		body   []byte
		folded string
	}
	all := map[string]content{}
	for _, r := range rows {
		for _, p := range r.Parts {
			all[string(p.Hash[:])] = content{p.Body, p.Folded}
		}
	}
	keys := make(map[string]int64, len(all))
	for _, hash := range slices.Sorted(maps.Keys(all)) {
		key, err := w.content(ctx, []byte(hash), string(all[hash].body), all[hash].folded)
		if err != nil {
			return nil, err
		}
		keys[hash] = key
	}
	return keys, nil
}

// content stores a long content, unless it is in its table already, and returns its
// key. It overwrites a damaged one.
func (w *writer) content(ctx context.Context, hash []byte, body, folded string) (key int64, err error) {
	for {
		var whole bool
		err = w.Row(ctx, "SELECT key, sha256(convert_to(body, 'UTF8')) = hash FROM @.contents WHERE hash = $1 FOR KEY SHARE", hash).Scan(&key, &whole)
		if err == nil && !whole {
			_, err = w.Exec(ctx, "UPDATE @.contents SET body = $2, folded = $3 WHERE key = $1", key, body, folded)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return key, err
		}
		err = w.Row(ctx, "INSERT INTO @.contents (hash, body, folded) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING RETURNING key", hash, body, folded).Scan(&key)
		if !errors.Is(err, pgx.ErrNoRows) {
			return key, err // otherwise another writer has just created it
		}
	}
}
