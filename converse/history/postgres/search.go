// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5"
)

// firstLooked is how many conversations a search with a limit looks at before it looks at
// all: frequent words are among them.
const firstLooked = 400

// Matches implements [sqlstore.DB]. They match the filter.
func (d database) Matches(ctx context.Context, filter history.Filter) ([]sqlstore.Match, error) {
	words := filter.Words()
	if len(words) == 0 {
		all, _, err := d.list(ctx, filter, nil, filter.Limit)
		return all, err
	}
	if filter.Limit > 0 {
		latest, keys, err := d.list(ctx, filter, nil, firstLooked)
		if err != nil || len(keys) == 0 {
			return nil, err
		}
		among, err := d.store.search(ctx, words, keys)
		if err != nil {
			return nil, err
		}
		var found []sqlstore.Match
		for i, one := range latest {
			if slices.Contains(among, keys[i]) {
				found = append(found, one)
			}
		}
		switch {
		case filter.Limit > 0 && len(found) >= filter.Limit:
			return found[:filter.Limit], nil
		case len(latest) < firstLooked:
			return found, nil
		}
	}
	among, err := d.store.search(ctx, words, nil)
	if err != nil || len(among) == 0 {
		return nil, err
	}
	all, _, err := d.list(ctx, filter, among, filter.Limit)
	return all, err
}

// list returns the conversations that match the filter apart from its text, and their
// keys. If among is not nil, it has the keys of those that can match.
func (d database) list(ctx context.Context, filter history.Filter, among []int64, limit int) (all []sqlstore.Match, keys []int64, err error) {
	s := d.store
	var most *int
	if limit > 0 {
		most = &limit
	}
	err = s.query(ctx, "", func(ctx context.Context) error {
		found, err := s.pool.Query(ctx, s.sql("SELECT "+sqlstore.Columns+` FROM @.conversations
			WHERE ($1 = '' OR owner = $1) AND (NOT $2 OR last NOT IN ('', $3)) AND tags @> $4
			AND ($5::timestamptz IS NULL OR changed >= $5) AND ($6::timestamptz IS NULL OR changed < $6)
			AND ($7::bigint[] IS NULL OR key = ANY ($7)) ORDER BY changed DESC, id LIMIT $8`),
			filter.Owner, filter.Open, string(canister.KindAssistant), d.Tags(filter.Tags),
			bound(filter.Since), bound(filter.Until), among, most)
		if err != nil {
			return err
		}
		keys = nil
		all, err = pgx.CollectRows(found, func(one pgx.CollectableRow) (sqlstore.Match, error) {
			key, info, err := d.ScanInfo(one)
			keys = append(keys, key)
			return sqlstore.Match{Info: info}, err
		})
		return err
	})
	return all, keys, err
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

// searchAll finds the conversations with a word, and searchSome those among some keys: a
// condition on the keys outside of the parts would read all canisters.
const (
	searchAll = `SELECT DISTINCT key FROM (
			SELECT key FROM @.conversations WHERE folded LIKE $1
			UNION ALL SELECT conversation FROM @.canisters WHERE folded LIKE $1
			UNION ALL SELECT conversation FROM @.parts JOIN @.contents c ON c.key = content WHERE c.folded LIKE $1) AS found
		WHERE $2::bigint[] IS NULL OR key = ANY ($2)`
	searchSome = `SELECT key FROM @.conversations WHERE key = ANY ($2) AND folded LIKE $1
		UNION SELECT conversation FROM @.canisters WHERE conversation = ANY ($2) AND folded LIKE $1
		UNION SELECT conversation FROM @.parts JOIN @.contents c ON c.key = content WHERE conversation = ANY ($2) AND c.folded LIKE $1`
)

// search returns the keys of the conversations that have all the words, each in the
// title or in a canister, among those with the given keys, or all if among is nil.
func (s *Store) search(ctx context.Context, words []string, among []int64) ([]int64, error) {
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		statement := searchAll
		if among != nil && len(among) <= firstLooked {
			statement = searchSome
		}
		err := s.query(ctx, "", func(ctx context.Context) error {
			found, err := s.pool.Query(ctx, s.sql(statement), "%"+literal.Replace(sqlstore.Fold(word))+"%", among)
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
