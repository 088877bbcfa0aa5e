// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"maps"
	"slices"
	"strings"
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

// Matches implements [sqlstore.DB].
func (d database) Matches(ctx context.Context, filter history.Filter) (found []sqlstore.Match, err error) {
	long, short := words(filter)
	among, err := d.store.search(ctx, long)
	if err != nil {
		return nil, err
	}
	limit := 0 // of the ones that need no further check
	if len(long) == 0 && short.Text == "" {
		limit = filter.Limit
	}
	err = d.store.query(ctx, "", func() error {
		found = nil
		rows, err := d.store.read.QueryContext(ctx, "SELECT "+sqlstore.Columns+` FROM conversations
			WHERE (? = '' OR owner = ?) AND (NOT ? OR last NOT IN ('', ?)) ORDER BY changed DESC, id`,
			filter.Owner, filter.Owner, filter.Open, string(canister.KindAssistant))
		if err != nil {
			return err
		}
		defer rows.Close()
		for (limit <= 0 || len(found) < limit) && rows.Next() {
			key, info, err := d.ScanInfo(rows)
			if err != nil {
				return err
			}
			sure, in := among[key]
			switch {
			case among != nil && !in, !filter.Match(info):
			case among == nil, sure:
				found = append(found, sqlstore.Match{Info: info, Left: short})
			default:
				found = append(found, sqlstore.Match{Info: info, Left: filter})
			}
		}
		return rows.Err()
	})
	return found, err
}

// search returns the keys of the conversations that have all the words, each in the
// title or in a canister. The result is nil, meaning all, if words is empty. The value
// of a key is false if the conversation may have the words and must be read.
func (s *Store) search(ctx context.Context, words []string) (among map[int64]bool, err error) {
	if len(words) == 0 {
		return nil, nil
	}
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	for _, word := range words {
		having, err := s.having(ctx, word)
		if err != nil {
			return nil, err
		}
		if among == nil {
			among = having
		}
		maps.DeleteFunc(among, func(key int64, _ bool) bool { return !having[key] })
	}
	unsure, err := s.keys(ctx, "SELECT conversation FROM unindexed")
	for key := range unsure {
		if !among[key] {
			among[key] = false
		}
	}
	return among, err
}

// having returns the keys of the conversations that have a word.
func (s *Store) having(ctx context.Context, word string) (map[int64]bool, error) {
	return s.keys(ctx, `SELECT key FROM conversations WHERE instr(folded, ?) > 0
		UNION ALL SELECT conversation FROM texts JOIN canisters ON seq = texts.rowid WHERE texts MATCH ?`,
		word, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
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

// catchUp indexes all canisters that exist now.
func (s *Store) catchUp(ctx context.Context) error {
	var until int64
	err := s.query(ctx, "", func() error {
		return s.read.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM canisters").Scan(&until)
	})
	for more := true; more && err == nil; {
		err = s.submit(ctx, func(w *writer) (verdict, err error) {
			upto, err := w.indexed()
			if more = upto < until; !more || err != nil {
				return nil, err
			}
			_, err = w.index()
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
