// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// words returns the words of a filter that are in the index, which have three
// characters or more, and a filter for the others.
func words(filter history.Filter) (long []string, others history.Filter) {
	var short []string
	for _, word := range filter.Words() {
		if utf8.RuneCountInString(word) >= 3 {
			long = append(long, sqlstore.Fold(word))
		} else {
			short = append(short, word)
		}
	}
	slices.Sort(long)
	return slices.Compact(long), history.Filter{Text: strings.Join(short, " ")}
}

// Matches implements [sqlstore.DB]. It reads conversations in the order of the list and stops
// when the limit is reached. If few canisters have one of the words, it looks up their
// conversations instead.
func (d database) Matches(ctx context.Context, filter history.Filter) ([]sqlstore.Match, error) {
	q := lookup{store: d.store, filter: filter, limit: filter.Limit}
	q.words, q.short = words(filter)
	d.store.order(ctx)
	if filter.Text == "" {
		return q.list(ctx, q.limit)
	}
	found, isDone, err := q.early(ctx)
	if err != nil || isDone {
		return found, err
	}
	if len(q.words) > 0 { // seldom, or far back in the list
		if err := d.store.catchUp(ctx); err != nil && !isUnwritable(err) {
			return nil, err
		}
		if err := q.search(ctx); err != nil {
			return nil, err
		}
	}
	if q.short.Text != "" {
		return q.list(ctx, 0) // not each conversation has the short words
	}
	return q.list(ctx, q.limit)
}

// Bounds of a search that does not look at each canister with the words.
const (
	maxKeys    = 2000 // canisters with a word, for a search that looks up their conversations
	maxRead    = 2000 // canisters that a search for frequent words reads
	maxFew     = 200  // conversations with one word that the index is asked about for the others
	maxBacklog = 2000 // canisters that a search with a limit indexes first
)

// lookup is one list.
type lookup struct {
	store  *Store
	filter history.Filter
	words  []string       // in the index
	short  history.Filter // the others
	limit  int            // 0 means all
	among  map[int64]bool // as search sets it; nil means all
}

// early returns the conversations that are found with little work; isDone is false if
// there can be others.
func (q *lookup) early(ctx context.Context) (found []sqlstore.Match, isDone bool, err error) {
	if q.limit == 0 {
		return nil, false, nil
	}
	var backlog int
	err = q.store.query(ctx, "", func() error {
		return q.store.read.QueryRowContext(ctx, "SELECT coalesce((SELECT max(seq) FROM canisters), 0) - upto FROM indexed").Scan(&backlog)
	})
	for _, word := range q.words {
		n := 0
		if err == nil {
			n, err = q.store.number(ctx, word)
		}
		if err != nil || backlog <= maxBacklog && n < maxKeys {
			return nil, false, err
		}
	}
	candidates, err := q.list(ctx, maxRead)
	for read, i := 0, 0; i < len(candidates) && read < maxRead && err == nil; i++ {
		info := candidates[i].Info
		if candidates[i].Err != nil {
			return nil, false, nil // the index tells of it
		}
		ok, damaged := q.filter.MatchText(info.Title, q.store.common.Read(ctx, info.ID, 0))
		switch {
		case errors.Is(damaged, history.ErrNotFound): // deleted meanwhile
		case damaged != nil:
			return nil, false, ctx.Err() // the index tells of it
		case ok:
			found = append(found, sqlstore.Match{Info: info})
		}
		if len(found) == q.limit {
			return found, true, err
		}
		read += info.Length
		isDone = i == len(candidates)-1 && len(candidates) < maxRead
	}
	return found, isDone, err
}

// list returns the conversations that match, apart from the words if among is nil.
func (q *lookup) list(ctx context.Context, limit int) (found []sqlstore.Match, err error) {
	err = q.store.query(ctx, "", func() error {
		found = nil
		statement, args := q.statement()
		rows, err := q.store.read.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for unsure := 0; (limit <= 0 || len(found)-unsure < limit) && rows.Next(); {
			key, info, err := database{q.store}.ScanInfo(rows)
			if _, damaged := errors.AsType[*history.CorruptError](err); damaged {
				found, unsure = append(found, sqlstore.Match{Info: info, Err: err}), unsure+1
				continue
			}
			if err != nil {
				return err
			}
			sure, in := q.among[key]
			if q.among != nil && !in || !q.filter.Match(info) {
				continue
			}
			left := q.short
			if q.among != nil && !sure {
				left, unsure = q.filter, unsure+1
			}
			found = append(found, sqlstore.Match{Info: info, Left: left})
		}
		return rows.Err()
	})
	return found, err
}

// statement returns the query for the conversations that can match, in order.
func (q *lookup) statement() (statement string, args []any) {
	f := q.filter
	statement = "SELECT " + sqlstore.Columns + ` FROM conversations WHERE (? = '' OR owner = ?) AND (NOT ? OR last NOT IN ('', ?))`
	args = []any{f.Owner, f.Owner, f.Open, string(canister.KindAssistant)}
	for _, bound := range []struct {
		comparison string
		at         time.Time
	}{{">=", f.Since}, {"<", f.Until}} {
		if !bound.at.IsZero() {
			statement, args = statement+" AND changed "+bound.comparison+" ?", append(args, nanoseconds(bound.at))
		}
	}
	if q.among != nil && len(q.among) <= maxKeys {
		keys, _ := json.Marshal(slices.Collect(maps.Keys(q.among))) // numbers always marshal
		statement, args = statement+" AND key IN (SELECT value FROM json_each(?))", append(args, string(keys))
	}
	return statement + " ORDER BY changed DESC, id", args
}

// nanoseconds returns a time as the database has it, between the years 1677 and 2262.
func nanoseconds(t time.Time) int64 {
	const most = math.MaxInt64 / int64(time.Second)
	return min(max(t.Unix(), -most), most-1)*int64(time.Second) + int64(t.Nanosecond())
}

// tell reports whether a conversation can have all the words, and which ones must be looked
// for in its canisters, because the index does not have all of them.
func (q *lookup) tell(ctx context.Context, key int64) (left history.Filter, ok bool, err error) {
	for _, word := range q.words {
		var has, isUnsure bool
		err := q.store.query(ctx, "", func() error {
			return q.store.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM conversations WHERE key = ?1 AND instr(folded, ?2) > 0)
					OR EXISTS (SELECT 1 FROM canisters CROSS JOIN texts ON texts.rowid = seq WHERE conversation = ?1 AND texts MATCH ?3),
				EXISTS (SELECT 1 FROM unindexed WHERE conversation = ?1)
					OR EXISTS (SELECT 1 FROM canisters WHERE conversation = ?1 AND seq > (SELECT upto FROM indexed))`, key, word, phrase(word)).Scan(&has, &isUnsure)
		})
		switch {
		case err != nil:
			return left, false, err
		case !has && !isUnsure:
			return left, false, nil
		case !has:
			return q.filter, true, nil
		}
	}
	return q.short, true, nil
}

// phrase returns a word as a query of the index.
func phrase(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` }

// order creates the index of the order of lists when it is first needed: a store with few
// conversations does not pay for it. It ignores errors, and does not wait for other programs
// that write: lists are only slower without the index, and the next one tries again.
func (s *Store) order(ctx context.Context) {
	if s.isOrdered.Load() {
		return
	}
	var many, ordered bool
	err := s.query(ctx, "", func() error {
		return s.read.QueryRowContext(ctx, `SELECT coalesce(max(key), 0) >= ?, EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'conversations_changed')
			FROM conversations`, orderedFrom).Scan(&many, &ordered)
	})
	if err != nil || !many {
		return
	}
	if !ordered {
		ctx, cancel := context.WithTimeout(ctx, busyTimeout)
		defer cancel()
		err = s.submit(ctx, func(w *writer) (verdict, err error) {
			_, err = w.Exec(background, "CREATE INDEX IF NOT EXISTS conversations_changed ON conversations (changed DESC, id, owner, last)")
			return nil, err
		})
	}
	s.isOrdered.Store(err == nil)
}

// orderedFrom is the smallest number of conversations for which lists need an index.
const orderedFrom = 2000

// number returns how many canisters have a word; it stops at maxKeys.
func (s *Store) number(ctx context.Context, word string) (n int, err error) {
	err = s.query(ctx, "", func() error {
		return s.read.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM texts WHERE texts MATCH ? LIMIT ?)", phrase(word), maxKeys).Scan(&n)
	})
	return n, err
}

// search sets the keys of the conversations that have all the words, each in the title
// or in a canister. The value of a key is false if the conversation may have the words and
// must be read.
func (q *lookup) search(ctx context.Context) error {
	numbers := map[string]int{}
	for _, word := range q.words {
		n, err := q.store.number(ctx, word)
		if err != nil {
			return err
		}
		numbers[word] = n
	}
	slices.SortStableFunc(q.words, func(a, b string) int { return numbers[a] - numbers[b] })
	unsure, err := q.store.keys(ctx, `SELECT conversation FROM unindexed
		UNION SELECT conversation FROM canisters WHERE seq > (SELECT upto FROM indexed)`)
	if err != nil {
		return err
	}
	for i, word := range q.words {
		if i > 0 && len(q.among) <= maxFew {
			break
		}
		having, err := q.store.having(ctx, word)
		if err != nil {
			return err
		}
		if q.among == nil {
			q.among = having
		}
		maps.DeleteFunc(q.among, func(key int64, _ bool) bool { return !having[key] })
	}
	for key := range q.among {
		left, ok, err := history.Filter{}, true, error(nil)
		if len(q.among) <= maxFew && len(q.words) > 1 {
			left, ok, err = q.tell(ctx, key)
		}
		switch {
		case err != nil:
			return err
		case !ok:
			delete(q.among, key)
		case left.Text == q.filter.Text:
			q.among[key] = false
		}
	}
	for key := range unsure {
		if !q.among[key] {
			q.among[key] = false
		}
	}
	return nil
}

// having returns the keys of the conversations that have a word.
func (s *Store) having(ctx context.Context, word string) (map[int64]bool, error) {
	return s.keys(ctx, `SELECT key FROM conversations WHERE instr(folded, ?) > 0
		UNION ALL SELECT conversation FROM texts JOIN canisters ON seq = texts.rowid WHERE texts MATCH ?`, word, phrase(word))
}

// keys returns the keys that a query finds.
func (s *Store) keys(ctx context.Context, query string, args ...any) (keys map[int64]bool, err error) {
	err = s.query(ctx, "", func() error {
		keys = map[int64]bool{}
		var key int64
		return reader{s.read}.Each(ctx, []any{&key}, func() error { keys[key] = true; return nil }, query, args...)
	})
	return keys, err
}

// catchUp indexes all canisters that exist now. It writes nothing if they are indexed.
func (s *Store) catchUp(ctx context.Context) error {
	var until int64
	var more bool
	err := s.query(ctx, "", func() error {
		return s.read.QueryRowContext(ctx, `SELECT until, until > upto
			FROM (SELECT coalesce(max(seq), 0) AS until FROM canisters), indexed`).Scan(&until, &more)
	})
	for err == nil && more { // after an error, do may still run and set more
		err = s.submit(ctx, func(w *writer) (verdict, err error) {
			upto, err := w.indexed()
			if more = upto < until; !more || err != nil {
				return nil, err
			}
			more, err = w.index() // false also if the last canisters were deleted meanwhile
			return nil, err
		})
	}
	return err
}

func (w *writer) indexed() (upto int64, err error) {
	err = w.conn.QueryRowContext(background, "SELECT upto FROM indexed").Scan(&upto)
	return upto, err
}

// Each indexing step is bounded, so that appends wait only briefly: it ends after that
// many canisters, or when they reach that many bytes.
const (
	indexRows  = 64
	indexBytes = 16 << 10
	// indexText is the length of the longest text that is indexed.
	indexText = 64 << 10
)

// index indexes the next canisters, and reports whether there may be more.
func (w *writer) index() (more bool, err error) {
	upto, err := w.indexed()
	if err != nil {
		return false, err
	}
	next, err := w.unindexed(upto)
	if err != nil || len(next) == 0 {
		return false, err
	}
	for _, r := range next {
		switch text := sqlstore.Fold(r.text); {
		case len(text) > indexText:
			_, err = w.Exec(background, "INSERT OR IGNORE INTO unindexed VALUES (?)", r.conversation)
		case text != "":
			_, err = w.Exec(background, "INSERT INTO texts (rowid, text) VALUES (?, ?)", r.seq, text)
		}
		if err != nil {
			return false, err
		}
		upto = r.seq
	}
	_, err = w.Exec(background, "UPDATE indexed SET upto = ?", upto)
	return true, err
}

// unindexed is a canister to be indexed.
type unindexed struct {
	seq, conversation int64
	text              string
}

// unindexed returns the next canisters after the seq upto. A damaged one has no text:
// readers report the damage.
func (w *writer) unindexed(upto int64) ([]unindexed, error) {
	found, err := w.conn.QueryContext(background, `SELECT seq, conversation, size, line, (SELECT group_concat(body, char(10) ORDER BY place)
			FROM parts JOIN contents ON key = content WHERE parts.conversation = c.conversation AND parts.position = c.position)
		FROM canisters c WHERE seq > ? ORDER BY seq LIMIT ?`, upto, indexRows)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var list []unindexed
	for size := 0; size < indexBytes && found.Next(); {
		var one unindexed
		var bytes int
		var line string
		var bodies *string
		if err := found.Scan(&one.seq, &one.conversation, &bytes, &line, &bodies); err != nil {
			return nil, err
		}
		one.text = textOf(line)
		if bodies != nil {
			for body := range strings.Lines(*bodies) {
				one.text += "\n" + textOf(body)
			}
		}
		list = append(list, one)
		size += bytes
	}
	return list, found.Err()
}

// textOf returns the searchable text of the canister in a line.
func textOf(line string) string {
	c, err := canister.Unmarshal([]byte(line))
	if err != nil {
		return ""
	}
	return history.TextOf(c)
}
