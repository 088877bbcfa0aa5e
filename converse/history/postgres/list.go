// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
	"github.com/jackc/pgx/v5"
)

// columns are the columns that scan reads, in order.
const columns = "key, id, title, tags, owner, created, changed, length, last, parent, parent_length"

// scan reads the columns of a row.
func scan(from pgx.Row) (key int64, info history.Info, err error) {
	err = from.Scan(&key, &info.ID, &info.Title, &info.Tags, &info.Owner, &info.Created, &info.Changed, &info.Length, &info.Last, &info.Parent, &info.ParentLength)
	if len(info.Tags) == 0 {
		info.Tags = nil
	}
	return key, info, err
}

// List implements [history.Store]. It loads the complete list, without any canisters,
// before the loop begins, and does not update it afterwards.
func (s *Store) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		found, err := s.matching(ctx, filter)
		if err != nil {
			yield(history.Info{}, err)
			return
		}
		for _, info := range found {
			if err := s.usable(ctx); err != nil {
				yield(history.Info{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// matching returns the conversations that match the filter, in order.
func (s *Store) matching(ctx context.Context, filter history.Filter) (all []history.Info, err error) {
	among, err := s.search(ctx, filter.Words())
	if err != nil || among != nil && len(among) == 0 {
		return nil, err
	}
	var limit *int
	if filter.Limit > 0 {
		limit = &filter.Limit
	}
	err = s.query(ctx, "", func(ctx context.Context) error {
		found, err := s.pool.Query(ctx, s.sql("SELECT "+columns+` FROM @.conversations
			WHERE ($1 = '' OR owner = $1) AND (NOT $2 OR last NOT IN ('', $3)) AND tags @> $4
			AND ($5::timestamptz IS NULL OR changed >= $5) AND ($6::timestamptz IS NULL OR changed < $6)
			AND ($7::bigint[] IS NULL OR key = ANY ($7)) ORDER BY changed DESC, id LIMIT $8`),
			filter.Owner, filter.Open, string(canister.KindAssistant), append([]string{}, filter.Tags...),
			bound(filter.Since), bound(filter.Until), among, limit)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(found, func(one pgx.CollectableRow) (history.Info, error) {
			_, info, err := scan(one)
			return info, err
		})
		return err
	})
	return all, err
}

// bound rounds a time up to the microseconds of the database, so that the comparisons
// give the same result. Zero means unbounded.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	return &t
}

// literal escapes a word for LIKE.
var literal = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// search returns the keys of the conversations that have all the words, each in the
// title or in a canister. The result is nil, meaning all, if words is empty.
func (s *Store) search(ctx context.Context, words []string) (among []int64, err error) {
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		err := s.query(ctx, "", func(ctx context.Context) error {
			found, err := s.pool.Query(ctx, s.sql(`SELECT DISTINCT key FROM (
					SELECT key FROM @.conversations WHERE folded LIKE $1
					UNION ALL SELECT conversation FROM @.canisters WHERE folded LIKE $1
					UNION ALL SELECT conversation FROM @.parts JOIN @.contents c ON c.key = content WHERE c.folded LIKE $1) AS found
				WHERE $2::bigint[] IS NULL OR key = ANY ($2)`), "%"+literal.Replace(row.Fold(word))+"%", among)
			if err != nil {
				return err
			}
			among, err = pgx.AppendRows([]int64{}, found, pgx.RowTo[int64])
			return err
		})
		if err != nil || len(among) == 0 {
			return among, err
		}
	}
	return among, nil
}

// Info implements [history.Store].
func (s *Store) Info(ctx context.Context, conversation string) (info history.Info, err error) {
	err = s.query(ctx, conversation, func(ctx context.Context) error {
		_, info, err = scan(s.pool.QueryRow(ctx, s.sql("SELECT "+columns+" FROM @.conversations WHERE id = $1"), conversation))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return history.Info{}, notFound(conversation)
	}
	return info, err
}

func notFound(conversation string) error {
	return fmt.Errorf("%w: %q", history.ErrNotFound, conversation)
}

// Describe implements [history.Store].
func (s *Store) Describe(ctx context.Context, conversation string, change history.Change) error {
	return s.write(ctx, conversation, func(ctx context.Context, w *writer) (verdict, err error) {
		key, info, err := w.info(ctx, conversation, "FOR NO KEY UPDATE")
		if errors.Is(err, pgx.ErrNoRows) {
			return notFound(conversation), nil
		}
		if err != nil {
			return nil, err
		}
		if info, verdict = change.Apply(info); verdict != nil {
			return verdict, nil
		}
		b := &pgx.Batch{}
		b.Queue(w.store.sql("UPDATE @.conversations SET title = $2, folded = $3, tags = $4, owner = $5 WHERE key = $1"),
			key, info.Title, row.Fold(info.Title), append([]string{}, info.Tags...), info.Owner)
		return nil, w.commit(ctx, b)
	})
}

// info begins the transaction, locks the row of a conversation and returns its
// metadata, or pgx.ErrNoRows if it does not exist.
func (w *writer) info(ctx context.Context, conversation, lock string) (key int64, info history.Info, err error) {
	err = w.begin(ctx, func(found pgx.Row) (err error) {
		key, info, err = scan(found)
		return err
	}, "SELECT "+columns+" FROM @.conversations WHERE id = $1 "+lock, conversation)
	return key, info, err
}
