// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Book is a database with the tasks of many users. Its methods are the tools. It keeps no
// state in memory. Its methods may be called concurrently, and several processes may use
// the same file.
type Book struct {
	write *sql.DB // one connection; its transactions start by locking the file
	read  *sql.DB // read-only connections

	patience time.Duration // how long to wait for writers in other processes
}

const (
	// nap is how long SQLite waits for a lock before it returns an error. SQLite does not
	// notice during this time that a context has ended, so it is short.
	nap = 100 * time.Millisecond
	// defaultPatience is how long an operation waits for a lock in total.
	defaultPatience = 5 * time.Second
	readers         = 4
)

// Open opens the database file at path. It creates or updates the database if necessary.
// A new file is accessible only to the user who runs the program. Open returns an error
// if the file is not a task book, or if a newer program wrote it. It waits up to 5 s for
// other programs that have locked the file. The caller must close the book.
func Open(ctx context.Context, path string) (*Book, error) {
	path, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("taskbook: %w", err)
	}
	b := &Book{patience: defaultPatience}
	if b.write, err = connect(path, 1, "foreign_keys(1)"); err != nil {
		return nil, fmt.Errorf("taskbook: %w", err)
	}
	if b.read, err = connect(path, readers, "query_only(1)"); err == nil {
		err = b.prepare(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("taskbook: %s: %w", path, errors.Join(err, b.Close()))
	}
	return b, nil
}

// prepare updates the database to the latest version and then enables WAL mode, so that
// readers and a writer can work concurrently. The file remembers the mode. In this order,
// the database of another program is not modified.
func (b *Book) prepare(ctx context.Context) error {
	if err := b.migrate(ctx); err != nil {
		return err
	}
	return b.patiently(func() error {
		_, err := b.write.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
}

// Close waits for running calls and closes the file.
func (b *Book) Close() error {
	var err error
	if b.read != nil {
		err = b.read.Close()
	}
	return errors.Join(err, b.write.Close())
}

// create creates an empty file that only its owner can read, if no file exists, and
// returns its absolute path. It does not open an existing file: closing it would release
// the locks that SQLite holds on it in this process.
func create(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path of the database is empty")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return filepath.Abs(path)
}

// connect returns a pool of connections. A connection is opened when it is first used.
func connect(path string, connections int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": append(pragmas, fmt.Sprintf("busy_timeout(%d)", nap.Milliseconds())),
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// transact calls do in a transaction that holds the write lock.
func (b *Book) transact(ctx context.Context, do func(*sql.Tx) error) error {
	return b.patiently(func() error {
		tx, err := b.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // no effect after Commit
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// patiently repeats do while another process holds the lock, because a call that fails
// that way has no effect. A do that uses a context fails in another way after the context
// ended, which stops the loop.
func (b *Book) patiently(do func() error) error {
	for began := time.Now(); ; {
		err := do()
		if !isBusy(err) || time.Since(began) > b.patience {
			return err
		}
	}
}

// codeOf returns SQLite's primary result code of an error, or 0 for other errors.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

func isBusy(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}
