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

// Matches implements [sqlstore.DB]. They match the filter.
func (d database) Matches(ctx context.Context, filter history.Filter) (all []sqlstore.Match, err error) {
	s := d.store
	among, err := s.search(ctx, filter.Words())
	if err != nil || among != nil && len(among) == 0 {
		return nil, err
	}
	var limit *int
	if filter.Limit > 0 {
		limit = &filter.Limit
	}
	err = s.query(ctx, "", func(ctx context.Context) error {
		found, err := s.pool.Query(ctx, s.sql("SELECT "+sqlstore.Columns+` FROM @.conversations
			WHERE ($1 = '' OR owner = $1) AND (NOT $2 OR last NOT IN ('', $3)) AND tags @> $4
			AND ($5::timestamptz IS NULL OR changed >= $5) AND ($6::timestamptz IS NULL OR changed < $6)
			AND ($7::bigint[] IS NULL OR key = ANY ($7)) ORDER BY changed DESC, id LIMIT $8`),
			filter.Owner, filter.Open, string(canister.KindAssistant), d.Tags(filter.Tags),
			bound(filter.Since), bound(filter.Until), among, limit)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(found, func(one pgx.CollectableRow) (sqlstore.Match, error) {
			_, info, err := d.ScanInfo(one)
			return sqlstore.Match{Info: info}, err
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
				WHERE $2::bigint[] IS NULL OR key = ANY ($2)`), "%"+literal.Replace(sqlstore.Fold(word))+"%", among)
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
