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

// Book is a database with the tasks of many users. Its methods are the tools;
// they hold nothing in memory, and may be called concurrently, also by several
// processes with one file.
type Book struct {
	write *sql.DB // one connection; its transactions begin with the lock on the file
	read  *sql.DB // connections that cannot write

	patience time.Duration // with writers in other processes
}

const (
	// nap is how long SQLite waits for a lock before it reports the fact. A
	// context that ends meanwhile goes unnoticed, so it is short.
	nap = 100 * time.Millisecond
	// defaultPatience is how long an operation waits for a lock in all.
	defaultPatience = 5 * time.Second
	readers         = 4
)

// Open opens the database in the file of that path, and makes or updates it as
// needed. The file belongs to the user of this program alone. It is an error if
// the file is no task book, or one of a newer program. Open waits up to 5 s for
// other programs that hold the file. The caller closes the book.
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

// prepare brings the database to the newest version, and then lets readers and a
// writer work side by side, which the file remembers. In this order, the
// database of another program stays as it is.
func (b *Book) prepare(ctx context.Context) error {
	if err := b.migrate(ctx); err != nil {
		return err
	}
	return b.patiently(func() error {
		_, err := b.write.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
}

// Close waits for the calls under way and closes the file.
func (b *Book) Close() error {
	var err error
	if b.read != nil {
		err = b.read.Close()
	}
	return errors.Join(err, b.write.Close())
}

// create makes an empty file that only its owner may read, unless there is a file, and
// returns its absolute path. A file that exists is not opened: closing it would release
// the locks that SQLite has on it in this process.
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

// connect returns a pool of connections. Nothing is opened before it is used.
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

// transact runs do in a transaction that holds the lock for writing.
func (b *Book) transact(ctx context.Context, do func(*sql.Tx) error) error {
	return b.patiently(func() error {
		tx, err := b.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// patiently does something again for as long as another process is in the way:
// then it had no effect. What is done fails otherwise once its context has ended.
func (b *Book) patiently(do func() error) error {
	for began := time.Now(); ; {
		err := do()
		if !isBusy(err) || time.Since(began) > b.patience {
			return err
		}
	}
}

// codeOf returns SQLite's primary result code for an error, 0 if it is not one
// of SQLite.
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
