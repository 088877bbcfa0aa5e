// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// translated caches the statements that translate has translated. They are all constant.
var translated sync.Map

// dialect translates the statements of sqlstore: the file is the schema, and a
// transaction that writes locks all of it.
var dialect = strings.NewReplacer("@.", "", "least(", "min(", " FOR NO KEY UPDATE", "", " FOR UPDATE", "", " FOR KEY SHARE", "")

func translate(statement string) string {
	if known, ok := translated.Load(statement); ok {
		return known.(string)
	}
	text := dialect.Replace(statement)
	translated.Store(statement, text)
	return text
}

// reader is a [sqlstore.Queryer] on the connections that read.
type reader struct{ db *sql.DB }

// Row implements [sqlstore.Queryer].
func (r reader) Row(ctx context.Context, statement string, args ...any) sqlstore.Scanner {
	return r.db.QueryRowContext(ctx, translate(statement), args...)
}

// Each implements [sqlstore.Queryer].
func (r reader) Each(ctx context.Context, dest []any, do func() error, statement string, args ...any) error {
	rows, err := r.db.QueryContext(ctx, translate(statement), args...)
	return each(rows, err, dest, do)
}

// preparedReader is a reader that prepares the statements of Row once.
type preparedReader struct {
	reader
	statements *statements
}

// Row implements [sqlstore.Queryer].
func (r preparedReader) Row(ctx context.Context, statement string, args ...any) sqlstore.Scanner {
	prepared, err := r.statements.prepare(ctx, translate(statement))
	if err != nil {
		return failed{err}
	}
	return prepared.QueryRowContext(ctx, args...)
}

// statements are the prepared statements of the connections that read. They are closed
// with these.
type statements struct {
	db *sql.DB
	mu sync.Mutex
	of map[string]*sql.Stmt // by text
}

// prepare returns the statement with a text, which must be one of a few. The caller must
// not hold a connection: the first one may have to wait for one.
func (s *statements) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if statement := s.known(text); statement != nil {
		return statement, nil
	}
	statement, err := s.db.PrepareContext(ctx, text) // may wait, so without the lock
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if earlier := s.of[text]; earlier != nil {
		_ = statement.Close() // it is unused
		return earlier, nil
	}
	s.of[text] = statement
	return statement, nil
}

func (s *statements) known(text string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[text]
}

// Balances implements [sqlstore.Queryer].
func (r reader) Balances(ctx context.Context, accounts []string) (map[string]budget.Balance, error) {
	return balances(ctx, r, accounts)
}

// each calls do after each row was scanned.
func each(rows *sql.Rows, err error, dest []any, do func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func balances(ctx context.Context, in sqlstore.Queryer, accounts []string) (map[string]budget.Balance, error) {
	all := make(map[string]budget.Balance, len(accounts))
	for _, account := range accounts {
		var b budget.Balance
		err := in.Row(ctx, "SELECT spent, reserved FROM accounts WHERE name = $1", account).Scan(&b.Spent, &b.Reserved)
		switch {
		case err == nil:
			all[account] = b
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return all, nil
}

// failed is a row that could not be read.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// Row implements [sqlstore.Queryer].
func (w *writer) Row(_ context.Context, statement string, args ...any) sqlstore.Scanner {
	prepared, err := w.query(statement)
	if err != nil {
		return failed{err}
	}
	if strings.Contains(statement, "@now") {
		args = append(args, sql.Named("now", w.now()))
	}
	return prepared.QueryRowContext(background, args...)
}

// Each implements [sqlstore.Queryer].
func (w *writer) Each(_ context.Context, dest []any, do func() error, statement string, args ...any) error {
	prepared, err := w.query(statement)
	if err != nil {
		return err
	}
	rows, err := prepared.QueryContext(background, args...)
	return each(rows, err, dest, do)
}

// Queue implements [sqlstore.Tx]. It runs the statement.
func (w *writer) Queue(ctx context.Context, statement string, args ...any) error {
	_, err := w.Exec(ctx, statement, args...)
	return err
}

// Begin implements [sqlstore.Tx]. The transaction has begun already.
func (w *writer) Begin(ctx context.Context, scan func(sqlstore.Scanner) error, statement string, args ...any) error {
	return scan(w.Row(ctx, statement, args...))
}

// Commit implements [sqlstore.Tx]. The writer commits for several at once.
func (w *writer) Commit(context.Context) error { return nil }

// LockReservation implements [sqlstore.Tx]. The transaction locks the file.
func (w *writer) LockReservation(context.Context, string) error { return nil }

// HoldAccounts implements [sqlstore.Tx].
func (w *writer) HoldAccounts(ctx context.Context, accounts []string) (map[string]budget.Balance, error) {
	return balances(ctx, w, accounts)
}

// Balances implements [sqlstore.Queryer].
func (w *writer) Balances(ctx context.Context, accounts []string) (map[string]budget.Balance, error) {
	return balances(ctx, w, accounts)
}

// Insert implements [sqlstore.Tx].
func (w *writer) Insert(ctx context.Context, e sqlstore.Extent, rows []sqlstore.Row) error {
	for _, r := range rows {
		if err := w.Queue(ctx, "INSERT INTO canisters (conversation, position, id, kind, line, parts, size, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			e.Key, r.Position, r.ID, string(r.Kind), string(r.Line), len(r.Parts), r.Size, r.Sum); err != nil {
			return err
		}
		for _, p := range r.Parts {
			content, err := w.content(ctx, p)
			if err != nil {
				return err
			}
			if err := w.Queue(ctx, "INSERT INTO parts (conversation, position, place, content) VALUES ($1, $2, $3, $4)", e.Key, r.Position, p.Index, content); err != nil {
				return err
			}
		}
	}
	e.Length += len(rows)
	w.extents.add(e)
	return nil
}

// content stores a long content, unless it is in its table already, and returns its
// key. It overwrites a damaged one.
func (w *writer) content(ctx context.Context, p sqlstore.Part) (key int64, err error) {
	var whole bool
	body := string(p.Body)
	err = w.Row(ctx, "SELECT key, body = $1 FROM contents WHERE hash = $2", body, p.Hash[:]).Scan(&key, &whole)
	switch {
	case err == nil && whole:
		return key, nil
	case err == nil:
		return key, w.Queue(ctx, "UPDATE contents SET body = $1 WHERE key = $2", body, key)
	case !errors.Is(err, sql.ErrNoRows):
		return 0, err
	}
	err = w.Row(ctx, "INSERT INTO contents (hash, body) VALUES ($1, $2) RETURNING key", p.Hash[:], body).Scan(&key)
	return key, err
}
