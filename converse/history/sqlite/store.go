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
	"time"

	"github.com/consort-go/consort/converse/history"
)

// Store keeps conversations in a SQLite database. All methods may be called
// concurrently, and any number of programs may use the same file.
type Store struct {
	path  string
	group int
	clock func() time.Time

	write *sql.DB // one connection, which the writer holds
	read  *sql.DB // connections that cannot write

	jobs    chan *job
	closing chan struct{}
	close   func() error // once
	ended   chan struct{}
}

var _ history.Store = (*Store)(nil)

// Options are the choices of [Open].
type Options struct {
	// Group is how many appends are committed in one transaction at most; 0 is
	// 64. With 1, each has its own.
	Group int
}

const (
	// nap is how long SQLite waits for a lock before it reports the fact; then
	// it is asked again, for as long as somebody waits.
	nap = 100 * time.Millisecond
	// patience is how long Open waits for other programs.
	patience = 10 * time.Second
	readers  = 8
)

// Open opens the database in the file of that path, and makes or updates it as
// needed; a new file belongs to the user of this program alone. Options may be
// nil. It is an error if the file is no database, or one of another kind, and
// history.ErrNewer if a newer program has written it. Open waits up to 10 s for
// other programs that hold the file. The caller closes the store.
func Open(path string, options *Options) (*Store, error) {
	if options == nil {
		options = &Options{}
	}
	if options.Group < 0 {
		return nil, fmt.Errorf("history/sqlite: Options.Group is %d; it must not be negative", options.Group)
	}
	s := &Store{
		group: cmp.Or(options.Group, 64), clock: time.Now,
		jobs: make(chan *job), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	var err error
	if s.path, err = create(path); err != nil {
		return nil, fmt.Errorf("history/sqlite: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.write, err = connect(s.path, 1, "synchronous(2)")
	if err == nil {
		s.read, err = connect(s.path, readers, "query_only(1)")
	}
	var w *writer
	if err == nil {
		w, err = s.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(s.fault(err), s.disconnect())
	}
	go w.run()
	s.close = sync.OnceValue(func() error {
		close(s.closing)
		<-s.ended
		return errors.Join(w.close(), s.disconnect())
	})
	return s, nil
}

// prepare brings the database to the newest version, and then lets readers and
// a writer work side by side, which the file remembers. In this order, the
// database of another program stays as it is.
func (s *Store) prepare(ctx context.Context) (*writer, error) {
	err := patiently(ctx, func() error { return migrate(ctx, s.write, migrations) })
	if err != nil {
		return nil, err
	}
	err = patiently(ctx, func() error {
		var mode string
		err := s.write.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		if err == nil && mode != "wal" {
			err = fmt.Errorf("the file system allows no write-ahead log: the journal mode is %s", mode)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := patiently(ctx, func() error { return writable(ctx, s.write) }); err != nil {
		return nil, err
	}
	return newWriter(ctx, s)
}

// writable returns an error if the database can only be read. SQLite opens such a file
// without one.
func writable(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "PRAGMA user_version = 0") // which is not committed
	return errors.Join(err, tx.Rollback())
}

// Close waits for the appends under way and closes the file. Loops that still
// read end with history.ErrClosed.
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

// creating lets the stores of this process create their files one after another.
var creating sync.Mutex

// create makes an empty file that only its owner may read, unless there is a file, and
// returns its absolute path. SQLite gives its other files the same permissions.
//
// A file that exists is not opened: closing it would release all locks that this
// process has on it (POSIX record locks, fcntl(2)), also those of another store.
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

// connect returns a pool of connections. Nothing is opened before it is used.
func connect(path string, connections int, pragma string) (*sql.DB, error) {
	query := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {pragma, fmt.Sprintf("busy_timeout(%d)", nap.Milliseconds())},
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

// patiently does something again for as long as another program is in the way:
// then it had no effect.
func patiently(ctx context.Context, do func() error) error {
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
