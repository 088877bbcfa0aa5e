// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/row"
)

// columns are the columns that scan reads, in order.
const columns = "key, id, title, tags, owner, created, changed, length, last, parent, parent_length"

// scan reads the columns of a row.
func scan(from interface{ Scan(...any) error }) (key int64, info history.Info, err error) {
	var tags string
	var created, changed int64
	err = from.Scan(&key, &info.ID, &info.Title, &tags, &info.Owner, &created, &changed, &info.Length, &info.Last, &info.Parent, &info.ParentLength)
	if err != nil {
		return 0, info, err
	}
	info.Created, info.Changed = time.Unix(0, created), time.Unix(0, changed)
	if err := json.Unmarshal([]byte(tags), &info.Tags); err != nil {
		return 0, info, &history.CorruptError{Conversation: info.ID, Place: fmt.Sprintf("table conversations, key %d: tags", key), Err: err}
	}
	if len(info.Tags) == 0 {
		info.Tags = nil
	}
	return key, info, nil
}

// listed is a conversation that may belong in a list.
type listed struct {
	history.Info
	sure bool // the long words are known to occur in it
}

// List implements [history.Store]. It loads the complete list, without any canisters,
// before the loop begins, and does not update it afterwards.
func (s *Store) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		long, short := words(filter)
		found, err := s.matching(ctx, filter, long, len(long) == 0 && short.Text == "")
		if err != nil {
			yield(history.Info{}, err)
			return
		}
		count := 0
		for _, one := range found {
			left := short
			if !one.sure {
				left = filter
			}
			says, err := left.Says(one.Title, s.Read(ctx, one.ID, 0))
			if errors.Is(err, history.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err = cmp.Or(ctx.Err(), err); err != nil {
				yield(history.Info{}, err)
				return
			}
			if !says {
				continue
			}
			if count++; !yield(one.Info, nil) || count == filter.Limit {
				return
			}
		}
	}
}

// matching returns the conversations that may match the filter, in order. If limited is
// set, they need no further check, and matching returns at most filter.Limit of them.
func (s *Store) matching(ctx context.Context, filter history.Filter, long []string, limited bool) (found []listed, err error) {
	among, err := s.search(ctx, long)
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, "", func() error {
		found = nil
		rows, err := s.read.QueryContext(ctx, "SELECT "+columns+` FROM conversations
			WHERE (? = '' OR owner = ?) AND (NOT ? OR last NOT IN ('', ?)) ORDER BY changed DESC, id`,
			filter.Owner, filter.Owner, filter.Open, string(canister.KindAssistant))
		if err != nil {
			return err
		}
		defer rows.Close()
		for !(limited && filter.Limit > 0 && len(found) == filter.Limit) && rows.Next() {
			key, info, err := scan(rows)
			if err != nil {
				return err
			}
			sure, in := among[key]
			if (among == nil || in) && filter.Allows(info) {
				found = append(found, listed{info, sure || among == nil})
			}
		}
		return rows.Err()
	})
	return found, err
}

// Info implements [history.Store].
func (s *Store) Info(ctx context.Context, conversation string) (info history.Info, err error) {
	err = s.query(ctx, conversation, func() error {
		_, info, err = scan(s.read.QueryRowContext(ctx, "SELECT "+columns+" FROM conversations WHERE id = ?", conversation))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return history.Info{}, notFound(conversation)
	}
	return info, err
}

func notFound(conversation string) error {
	return fmt.Errorf("%w: %q", history.ErrNotFound, conversation)
}

// info returns the metadata of a conversation inside the writer's transaction, or
// sql.ErrNoRows if it does not exist.
func (w *writer) info(conversation string) (key int64, info history.Info, err error) {
	return scan(w.conn.QueryRowContext(always, "SELECT "+columns+" FROM conversations WHERE id = ?", conversation))
}

// Describe implements [history.Store].
func (s *Store) Describe(ctx context.Context, conversation string, change history.Change) error {
	err := s.ask(ctx, func(w *writer) (verdict, err error) {
		key, info, err := w.info(conversation)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(conversation), nil
		}
		if err != nil {
			return nil, err
		}
		if info, verdict = change.Apply(info); verdict != nil {
			return verdict, nil
		}
		_, err = w.conn.ExecContext(always, "UPDATE conversations SET title = ?, folded = ?, tags = ?, owner = ? WHERE key = ?",
			info.Title, row.Fold(info.Title), list(info.Tags), info.Owner, key)
		return nil, err
	})
	return named(err, conversation)
}

// list returns the tags as a JSON array.
func list(tags []string) string {
	if len(tags) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(tags) // strings can always be encoded
	return string(text)
}
