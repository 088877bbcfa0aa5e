// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// Append implements [history.Log.Append], and reports whether the conversation has
// grown.
func (s *Store) Append(ctx context.Context, conversation string, expected int, canisters []canister.Canister) (grown bool, err error) {
	rows, err := rowsOf(conversation, expected, canisters, s.Folded)
	if err != nil {
		return false, err
	}
	return write(ctx, s.DB, conversation, func(ctx context.Context, tx Tx) (grown bool, verdict, err error) {
		e, ok := tx.Known(conversation)
		if !ok {
			if e, err = lock(ctx, tx, conversation, "FOR NO KEY UPDATE"); err != nil {
				return false, nil, err
			}
		}
		var existing map[int]string // identities, queried once
		todo, verdict := history.CheckAppend(conversation, e.Length, expected, canisters, func(index int) (id string, _ error) {
			if existing == nil {
				existing, err = identities(ctx, tx, e.Key, expected, len(canisters))
			}
			if err == nil && len(existing) != len(canisters) {
				return "", s.Corrupt(conversation, fmt.Errorf("of %d rows from position %d, only %d exist", len(canisters), expected, len(existing)), "table canisters, conversation %d", e.Key)
			}
			return existing[index], err
		})
		switch {
		case verdict != nil || err != nil || len(canisters) == 0:
			return false, verdict, err
		case !todo:
			return false, nil, tx.Commit(ctx) // waits for the standbys if the commit of these canisters did not
		}
		return true, nil, s.add(ctx, tx, e, rows)
	})
}

// lock begins a transaction that locks a conversation, and returns its extent; the key
// is 0 if it does not exist.
func lock(ctx context.Context, tx Tx, conversation, mode string) (Extent, error) {
	e := Extent{ID: conversation}
	err := tx.Begin(ctx, func(row Scanner) error { return row.Scan(&e.Key, &e.Length) }, "SELECT key, length FROM @.conversations WHERE id = $1 "+mode, conversation)
	if notFound(err) {
		return e, nil
	}
	return e, err
}

// identities returns the IDs at n indexes of a conversation, starting at first.
func identities(ctx context.Context, tx Tx, key int64, first, n int) (map[int]string, error) {
	all := map[int]string{}
	var index int
	var id []byte
	err := tx.Each(ctx, []any{&index, &id}, func() error { all[index] = string(id); return nil },
		"SELECT position, id FROM @.canisters WHERE conversation = $1 AND position >= $2 AND position < $3", key, first, first+n)
	return all, err
}

// add adds rows to a conversation, or creates it if its key is 0, and commits.
func (s *Store) add(ctx context.Context, tx Tx, e Extent, rows []Row) (err error) {
	last := string(rows[len(rows)-1].Kind)
	if e.Key == 0 {
		err = tx.Row(ctx, `INSERT INTO @.conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			VALUES ($1, '', '', $2, '', @now, @now, $3, $4, '', 0) ON CONFLICT (id) DO NOTHING RETURNING key`, e.ID, s.DB.Tags(nil), len(rows), last).Scan(&e.Key)
		if notFound(err) {
			err = ErrRace
		}
	} else {
		err = tx.Queue(ctx, "UPDATE @.conversations SET length = $2, last = $3, changed = @now WHERE key = $1", e.Key, e.Length+len(rows), last)
	}
	if err == nil {
		err = tx.Insert(ctx, e, rows)
	}
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// info begins a transaction that locks a conversation, and returns its key and metadata,
// or an error for which notFound is true.
func (s *Store) info(ctx context.Context, tx Tx, conversation, mode string) (key int64, info history.Info, err error) {
	err = tx.Begin(ctx, func(row Scanner) (err error) {
		key, info, err = s.DB.ScanInfo(row)
		return err
	}, "SELECT "+Columns+" FROM @.conversations WHERE id = $1 "+mode, conversation)
	return key, info, err
}

// missing returns the error about a conversation that does not exist.
func missing(conversation string) error {
	return fmt.Errorf("%w: %q", history.ErrNotFound, conversation)
}

// Fork implements [history.Store.Fork]. The rows of canisters are copied, and the long
// contents shared.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := history.CheckID(to); err != nil {
		return err
	}
	return named(s.DB.Write(ctx, conversation, func(ctx context.Context, tx Tx) (verdict, err error) {
		from, info, err := s.info(ctx, tx, conversation, "FOR KEY SHARE") // prevents deletion
		switch {
		case notFound(err):
			return missing(conversation), nil
		case err != nil:
			return nil, err
		case length < 0 || length > info.Length:
			return fmt.Errorf("%w: %q cannot be forked after %d canisters, it has %d", history.ErrNotFound, conversation, length, info.Length), nil
		}
		var key int64
		err = tx.Row(ctx, `INSERT INTO @.conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			SELECT $2, title, $3, tags, owner, @now, @now, $4,
				coalesce((SELECT kind FROM @.canisters WHERE conversation = $1 AND position = $4 - 1), ''), id, $4
			FROM @.conversations WHERE key = $1
			ON CONFLICT (id) DO NOTHING RETURNING key`, from, to, Fold(info.Title), length).Scan(&key)
		if notFound(err) {
			return fmt.Errorf("%w: %q", history.ErrExists, to), nil
		}
		if err != nil {
			return nil, err
		}
		return nil, s.copyRows(ctx, tx, from, conversation, length, key)
	}), conversation)
}

// copyRows copies the first canisters of a conversation to the one with the given key,
// and commits.
func (s *Store) copyRows(ctx context.Context, tx Tx, from int64, conversation string, length int, key int64) error {
	columns := "position, id, kind, line, parts, size, sum"
	if s.Folded {
		columns += ", folded"
	}
	copied, err := tx.Exec(ctx, "INSERT INTO @.canisters (conversation, "+columns+") SELECT $2, "+columns+
		" FROM @.canisters WHERE conversation = $1 AND position < $3 ORDER BY position", from, key, length)
	if err == nil && copied != int64(length) {
		err = s.Corrupt(conversation, fmt.Errorf("only %d of the first %d canisters exist", copied, length), "table canisters, conversation %d", from)
	}
	if err == nil {
		err = tx.Queue(ctx, `INSERT INTO @.parts (conversation, position, place, content)
			SELECT $2, position, place, content FROM @.parts WHERE conversation = $1 AND position < $3`, from, key, length)
	}
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// deletions delete a conversation, and the long contents that no other one uses.
var deletions = []string{
	`DELETE FROM @.contents WHERE key IN (SELECT content FROM @.parts WHERE conversation = $1)
		AND NOT EXISTS (SELECT 1 FROM @.parts WHERE content = key AND conversation <> $1)`,
	"DELETE FROM @.parts WHERE conversation = $1",
	"DELETE FROM @.canisters WHERE conversation = $1",
	"DELETE FROM @.conversations WHERE key = $1",
}

// Delete implements [history.Store.Delete].
func (s *Store) Delete(ctx context.Context, conversation string, expected int) error {
	return named(s.DB.Write(ctx, conversation, func(ctx context.Context, tx Tx) (verdict, err error) {
		tx.Forget(conversation)
		e, err := lock(ctx, tx, conversation, "FOR UPDATE")
		switch {
		case err != nil:
			return nil, err
		case e.Key == 0:
			return nil, tx.Commit(ctx) // waits for the standbys if the commit of an earlier deletion did not
		}
		if conflict := history.CheckDelete(conversation, e.Length, expected); conflict != nil {
			return conflict, nil
		}
		for _, statements := range [][]string{s.BeforeDelete, deletions} {
			for _, statement := range statements {
				if err := tx.Queue(ctx, statement, e.Key); err != nil {
					return nil, err
				}
			}
		}
		return nil, tx.Commit(ctx)
	}), conversation)
}

// Describe implements [history.Store.Describe].
func (s *Store) Describe(ctx context.Context, conversation string, change history.Change) error {
	return named(s.DB.Write(ctx, conversation, func(ctx context.Context, tx Tx) (verdict, err error) {
		key, info, err := s.info(ctx, tx, conversation, "FOR NO KEY UPDATE")
		if notFound(err) {
			return missing(conversation), nil
		}
		if err != nil {
			return nil, err
		}
		if info, verdict = change.Apply(info); verdict != nil {
			return verdict, nil
		}
		err = tx.Queue(ctx, "UPDATE @.conversations SET title = $2, folded = $3, tags = $4, owner = $5 WHERE key = $1",
			key, info.Title, Fold(info.Title), s.DB.Tags(info.Tags), info.Owner)
		if err != nil {
			return nil, err
		}
		return nil, tx.Commit(ctx)
	}), conversation)
}

// Info implements [history.Store.Info].
func (s *Store) Info(ctx context.Context, conversation string) (info history.Info, err error) {
	err = s.DB.Query(ctx, conversation, func(ctx context.Context, q Queryer) error {
		_, info, err = s.DB.ScanInfo(q.Row(ctx, "SELECT "+Columns+" FROM @.conversations WHERE id = $1", conversation))
		return err
	})
	if notFound(err) {
		return history.Info{}, missing(conversation)
	}
	return info, err
}

// List implements [history.Store.List]. It loads the complete list, without any
// canisters, before the loop begins, and does not update it afterwards.
func (s *Store) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		matches, err := s.DB.Matches(ctx, filter)
		if err != nil {
			yield(history.Info{}, err)
			return
		}
		count := 0
		var bad []Match
		for i := 0; i < len(matches) && (count == 0 || count != filter.Limit); i++ {
			match := &matches[i]
			says, err := s.says(ctx, match)
			switch {
			case errors.Is(err, history.ErrNotFound): // deleted meanwhile
			case isDamage(err):
				bad = append(bad, Match{Info: match.Info, Err: err})
			case err != nil:
				yield(history.Info{}, err)
				return
			case says:
				if count++; !yield(match.Info, nil) {
					return
				}
			}
		}
		for _, match := range bad {
			if !yield(match.Info, match.Err) {
				return
			}
		}
	}
}

// says reports whether a conversation has the words that must still be found.
func (s *Store) says(ctx context.Context, match *Match) (bool, error) {
	if match.Err != nil {
		return false, match.Err
	}
	says, err := match.Left.MatchText(match.Info.Title, s.Read(ctx, match.Info.ID, 0))
	return says, cmp.Or(s.Usable(ctx), err)
}

// isDamage reports whether an error is about what one conversation has.
func isDamage(err error) bool {
	_, corrupt := errors.AsType[*history.CorruptError](err)
	return corrupt || errors.Is(err, canister.ErrNewer)
}
