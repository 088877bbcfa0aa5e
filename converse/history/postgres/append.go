// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
	"github.com/jackc/pgx/v5"
)

// Append implements [history.Log]. It waits while another writer appends to the same
// conversation. After a connection error it is unknown whether the canisters were
// added: as always, it is safe to repeat the append.
func (s *Store) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	lines, err := history.Lines(conversation, canisters)
	if err != nil {
		return err
	}
	records := make([]record, len(lines))
	for i, line := range lines {
		if records[i], err = recordOf(length+i, canisters[i], line); err != nil {
			return s.fault(ctx, conversation, err)
		}
	}
	grown := false
	err = s.write(ctx, conversation, func(ctx context.Context, w *writer) (verdict, err error) {
		key, have, err := w.lock(ctx, conversation)
		if err != nil {
			return nil, err
		}
		var all map[int]string // identities, queried once
		todo, verdict := history.CheckAppend(conversation, have, length, canisters, func(place int) (string, error) {
			if all == nil {
				all, err = w.identities(ctx, key, length, len(canisters))
			}
			return all[place], err
		})
		if grown = todo; !todo || err != nil {
			return verdict, err
		}
		return nil, w.append(ctx, conversation, key, length, records)
	})
	if err == nil && grown {
		s.bell.ring(conversation)
	}
	return err
}

// record is a canister with the texts that a search compares.
type record struct {
	row.Row
	folded string
	parts  []string // folded, of Row.Parts
}

func recordOf(position int, c canister.Canister, line []byte) (record, error) {
	r, err := row.Of(position, c, line)
	if err != nil {
		return record{}, err
	}
	texts := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		if texts[i], err = textOf(p.Body); err != nil {
			return record{}, err
		}
	}
	own := row.Fold(history.TextOf(c))
	if len(r.Parts) > 0 {
		own, err = textOf(r.Line)
	}
	return record{r, own, texts}, err
}

// textOf returns the searchable text of the canister in a line.
func textOf(line []byte) (string, error) {
	c, err := canister.Unmarshal(line)
	if err != nil {
		return "", err
	}
	return row.Fold(history.TextOf(c)), nil
}

// lock begins the transaction, and returns the key and the length of a conversation, or
// 0 and 0 if it does not exist. No other writer can append to it until the transaction
// ends.
func (w *writer) lock(ctx context.Context, conversation string) (key int64, length int, err error) {
	err = w.begin(ctx, func(found pgx.Row) error {
		err := found.Scan(&key, &length)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}, "SELECT key, length FROM @.conversations WHERE id = $1 FOR NO KEY UPDATE", conversation)
	return key, length, err
}

// identities returns the identities at n places of a conversation, starting at first.
func (w *writer) identities(ctx context.Context, key int64, first, n int) (map[int]string, error) {
	found, err := w.conn.Query(ctx, w.store.sql("SELECT position, id FROM @.canisters WHERE conversation = $1 AND position >= $2 AND position < $3"), key, first, first+n)
	if err != nil {
		return nil, err
	}
	all := map[int]string{}
	var place int
	var id []byte
	_, err = pgx.ForEachRow(found, []any{&place, &id}, func() error { all[place] = string(id); return nil })
	if err == nil && len(all) != n {
		err = w.store.corrupt("", fmt.Errorf("of %d rows from position %d on, there are %d", n, first, len(all)), "table canisters, conversation %d", key)
	}
	return all, err
}

// append adds records to the conversation with the given key, or creates the
// conversation if key is 0, and commits.
func (w *writer) append(ctx context.Context, conversation string, key int64, length int, records []record) error {
	last := string(records[len(records)-1].Kind)
	b := &pgx.Batch{}
	if key == 0 {
		err := w.row(ctx, `INSERT INTO @.conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			VALUES ($1, '', '', '{}', '', clock_timestamp(), clock_timestamp(), $2, $3, '', 0)
			ON CONFLICT (id) DO NOTHING RETURNING key`, conversation, len(records), last).Scan(&key)
		if errors.Is(err, pgx.ErrNoRows) {
			return errRace
		} else if err != nil {
			return err
		}
	} else {
		b.Queue(w.store.sql("UPDATE @.conversations SET length = $2, last = $3, changed = clock_timestamp() WHERE key = $1"), key, length+len(records), last)
	}
	contents, err := w.keep(ctx, records)
	if err != nil {
		return err
	}
	for chunk := range chunks(records) {
		w.insert(b, key, chunk, contents)
	}
	return w.commit(ctx, b)
}

// chunks divides records for insertion: each statement inserts up to 1,000, or fewer if
// they reach 8 MiB.
func chunks(records []record) func(yield func([]record) bool) {
	return func(yield func([]record) bool) {
		from, size := 0, 0
		for i, r := range records {
			size += r.Size
			if i+1-from == 1000 || size >= 8<<20 || i+1 == len(records) {
				if !yield(records[from : i+1]) {
					return
				}
				from, size = i+1, 0
			}
		}
	}
}

// insert queues the rows of canisters and of their long contents; contents has the keys
// of the long contents by hash.
func (w *writer) insert(b *pgx.Batch, key int64, records []record, contents map[string]int64) {
	n := len(records)
	positions, parts, sizes := make([]int, n), make([]int, n), make([]int, n)
	ids, kinds, lines, folded, sums := make([][]byte, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	var at, places []int
	var held []int64
	for i, r := range records {
		positions[i], ids[i], kinds[i], lines[i] = r.Position, []byte(r.ID), string(r.Kind), string(r.Line)
		folded[i], parts[i], sizes[i], sums[i] = r.folded, len(r.Parts), r.Size, r.Sum
		for _, p := range r.Parts {
			at, places, held = append(at, r.Position), append(places, p.Place), append(held, contents[string(p.Hash[:])])
		}
	}
	b.Queue(w.store.sql(`INSERT INTO @.canisters (conversation, position, id, kind, line, folded, parts, size, sum)
		SELECT $1, * FROM unnest($2::int[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::bigint[])`),
		key, positions, ids, kinds, lines, folded, parts, sizes, sums)
	if len(at) > 0 {
		b.Queue(w.store.sql("INSERT INTO @.parts (conversation, position, place, content) SELECT $1, * FROM unnest($2::int[], $3::int[], $4::bigint[])"),
			key, at, places, held)
	}
}

// keep stores the long contents and returns their keys by hash. It locks them until the
// transaction ends, so that a Delete waits. All transactions lock in the order of the
// hashes, to prevent deadlocks.
func (w *writer) keep(ctx context.Context, records []record) (map[string]int64, error) {
	type content struct {
		body   []byte
		folded string
	}
	all := map[string]content{}
	for _, r := range records {
		for i, p := range r.Parts {
			all[string(p.Hash[:])] = content{p.Body, r.parts[i]}
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
		err = w.row(ctx, "SELECT key, sha256(convert_to(body, 'UTF8')) = hash FROM @.contents WHERE hash = $1 FOR KEY SHARE", hash).Scan(&key, &whole)
		if err == nil && !whole {
			_, err = w.conn.Exec(ctx, w.store.sql("UPDATE @.contents SET body = $2, folded = $3 WHERE key = $1"), key, body, folded)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return key, err
		}
		err = w.row(ctx, "INSERT INTO @.contents (hash, body, folded) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING RETURNING key", hash, body, folded).Scan(&key)
		if !errors.Is(err, pgx.ErrNoRows) {
			return key, err // otherwise another writer has just created it
		}
	}
}
