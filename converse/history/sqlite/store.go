// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// Store is a [history.Store] in a SQLite database. All methods may be called
// concurrently, and any number of programs may use the same file.
type Store struct {
	common sqlstore.Store
	path   string
	group  int
	clock  func() time.Time

	write *sql.DB // one connection, held by the writer
	read  *sql.DB // read-only connections

	statements *statements // of read
	isOrdered  atomic.Bool // the index of the order of lists exists

	jobs  chan *job
	close func() error // runs once
	ended chan struct{}
}

var _ history.Store = (*Store)(nil)

// Options configure [Open].
type Options struct {
	// Group is the maximum number of appends committed in one transaction; 0 means 256.
	// With 1, each append has its own transaction.
	Group int
}

const (
	// busyTimeout is how long SQLite waits for a lock before it returns an error; the operation
	// is then repeated until its context ends.
	busyTimeout = 100 * time.Millisecond
	// openTimeout is how long Open waits for other programs.
	openTimeout = 10 * time.Second
	readers     = 8
)

// Open opens the database in the file at path, and creates or updates it as needed; a
// new file is accessible only to the current user. Options may be nil. If the file is
// not a database, or belongs to another program, Open returns an error; if a newer
// program has written it, canister.ErrNewer. Open waits up to 10 s for other programs
// that hold the file. The caller must close the store.
func Open(path string, options *Options) (*Store, error) {
	if options == nil {
		options = &Options{}
	}
	if options.Group < 0 {
		return nil, fmt.Errorf("history/sqlite: Options.Group is %d; it must not be negative", options.Group)
	}
	s := &Store{
		group: cmp.Or(options.Group, 256), clock: time.Now,
		jobs: make(chan *job), ended: make(chan struct{}),
	}
	var err error
	if s.path, err = create(path); err != nil {
		return nil, fmt.Errorf("history/sqlite: %w", err)
	}
	s.common = sqlstore.Store{DB: database{s}, Location: s.path, BeforeDelete: beforeDelete, Closing: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	s.write, err = connect(s.path, 1, "synchronous(2)")
	if err == nil {
		s.read, err = connect(s.path, readers, "query_only(1)")
	}
	var w *writer
	if err == nil {
		s.statements = &statements{db: s.read, of: map[string]*sql.Stmt{}}
		w, err = s.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(s.explain("", err), s.disconnect())
	}
	go w.run()
	s.close = sync.OnceValue(func() error {
		close(s.common.Closing)
		<-s.ended
		return errors.Join(w.close(), s.disconnect())
	})
	return s, nil
}

// prepare updates the database to the newest version, and then enables the write-ahead
// log, which lets readers and a writer work concurrently and is a persistent setting of
// the file. In this order, the database of another program is left unchanged.
func (s *Store) prepare(ctx context.Context) (*writer, error) {
	err := retryWhileBusy(ctx, func() error { return migrate(ctx, s.write, migrations) })
	if err != nil {
		return nil, err
	}
	err = retryWhileBusy(ctx, func() error {
		var mode string
		err := s.write.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if err == nil && mode != "wal" {
			err = fmt.Errorf("the file system does not support a write-ahead log: the journal mode is %s", mode)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := retryWhileBusy(ctx, func() error { return writable(ctx, s.write) }); err != nil {
		return nil, err
	}
	return newWriter(ctx, s)
}

// writable returns an error if the database is read-only. SQLite opens such a file
// without an error.
func writable(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "PRAGMA user_version = 0") // never committed
	return errors.Join(err, tx.Rollback())
}

// Close waits for running appends and closes the file. Loops that are still reading end
// with history.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) disconnect() error {
	var err error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// creating serializes the creation of files in this process.
var creating sync.Mutex

// create creates an empty file that only its owner may read, unless the file exists,
// and returns its absolute path. SQLite gives its other files the same permissions.
//
// An existing file is not opened: closing it would release all locks that this process
// has on it (POSIX record locks, fcntl(2)), including the locks of another store.
func create(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path of the database is empty")
	}
	creating.Lock()
	defer creating.Unlock()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return "", err
		}
		if err := file.Close(); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// connect returns a pool of connections, which are opened on first use.
func connect(path string, connections int, pragma string) (*sql.DB, error) {
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {pragma, fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())},
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

// retryWhileBusy repeats do while another program holds the file; such attempts have no
// effect.
func retryWhileBusy(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !isBusy(err) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("another program holds the file: %w", ctx.Err())
		}
	}
}
