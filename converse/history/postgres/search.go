// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	if !isStorable(append([]string{filter.Owner}, filter.Tags...)) {
		return nil, nil // the database would refuse the statement
	}
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
		if len(found) >= filter.Limit || len(latest) < firstLooked {
			return found[:min(len(found), filter.Limit)], nil
		}
	}
	among, err := d.store.search(ctx, words, nil)
	if err != nil || len(among) == 0 {
		return nil, err
	}
	all, _, err := d.list(ctx, filter, among, filter.Limit)
	return all, err
}

// isStorable reports whether a conversation can have these texts; see [history.Change.Apply].
func isStorable(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) || strings.Contains(text, "\x00") })
}

// newestFactor is how many conversations [conditions.since] looks at for each of the list, and
// leastNewest how many at least.
const newestFactor, leastNewest = 3, 1000

// conditions are those of a statement, with their arguments. Only those that a filter has are
// written: the database evaluates each for each row.
type conditions struct {
	text []string
	args []any
}

// add adds a condition in which ? stands for an argument.
func (c *conditions) add(text string, arg any) {
	c.text = append(c.text, strings.ReplaceAll(text, "?", c.arg(arg)))
}

// arg adds an argument and returns its placeholder.
func (c *conditions) arg(value any) string {
	c.args = append(c.args, value)
	return "$" + strconv.Itoa(len(c.args))
}

func (c *conditions) where() string {
	if len(c.text) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.text, " AND ")
}

// since adds that a list of at most limit conversations does not need those that changed earlier
// than as many that match, among the ones that were created last, which the primary key finds.
// Nearly all rows are left out by this comparison instead of sorted: there is no index on the time
// of the change, which each append would have to write.
func (c *conditions) since(limit int) {
	all := c.where()
	c.text = append([]string{fmt.Sprintf(`changed >= coalesce((SELECT changed FROM (SELECT * FROM @.conversations ORDER BY key DESC LIMIT %s) AS newest%s
		ORDER BY changed DESC OFFSET %s LIMIT 1), '-infinity')`, c.arg(max(newestFactor*limit, leastNewest)), all, c.arg(limit-1))}, c.text...)
}

// list returns the conversations that match the filter apart from its text, and their
// keys. If among is not nil, it has the keys of those that can match.
func (d database) list(ctx context.Context, filter history.Filter, among []int64, limit int) (all []sqlstore.Match, keys []int64, err error) {
	s, c := d.store, &conditions{}
	for _, one := range []struct {
		isSet bool
		text  string
		arg   any
	}{
		{filter.Owner != "", "owner = ?", filter.Owner},
		{filter.Open, "last NOT IN ('', ?)", string(canister.KindAssistant)},
		{len(filter.Tags) > 0, "tags @> ?", d.Tags(filter.Tags)},
		{!filter.Since.IsZero(), "changed >= ?", bound(filter.Since)},
		{!filter.Until.IsZero(), "changed < ?", bound(filter.Until)},
		{among != nil, "key = ANY (?)", among},
	} {
		if one.isSet {
			c.add(one.text, one.arg)
		}
	}
	end := " ORDER BY changed DESC, id"
	if limit > 0 {
		if among == nil {
			c.since(limit)
		}
		end += " LIMIT " + c.arg(limit)
	}
	statement := s.sql("SELECT " + sqlstore.Columns + " FROM @.conversations" + c.where() + end)
	err = s.query(ctx, "", func(ctx context.Context) error {
		found, err := s.pool.Query(ctx, statement, c.args...)
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
// give the same result.
func bound(t time.Time) time.Time { return t.Add(time.Microsecond - 1).Truncate(time.Microsecond) }

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
		var having []int64
		err := s.query(ctx, "", func(ctx context.Context) (err error) { // may be repeated with the same keys
			found, _ := s.pool.Query(ctx, s.sql(statement), "%"+literal.Replace(sqlstore.Fold(word))+"%", among) // AppendRows returns its error
			having, err = pgx.AppendRows([]int64{}, found, pgx.RowTo[int64])
			return err
		})
		if among = having; err != nil || len(among) == 0 {
			return among, err
		}
	}
	return among, nil
}
