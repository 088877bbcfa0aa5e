// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// job is a write operation. If do returns a verdict it changes nothing, and only its
// caller gets the verdict; err is an error of the database.
type job struct {
	ctx  context.Context
	do   func(*writer) (verdict, err error)
	done chan error // buffered for the one result
}

// submit has the writer run do. If the context ends first, do may still run.
func (s *Store) submit(ctx context.Context, do func(*writer) (verdict, err error)) error {
	if err := s.common.Usable(ctx); err != nil {
		return err
	}
	j := &job{ctx: ctx, do: do, done: make(chan error, 1)}
	select {
	case s.jobs <- j:
	case <-s.common.Closing:
		return history.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer is the goroutine that writes, with its connection.
type writer struct {
	store *Store
	conn  *sql.Conn

	commands map[string]*command // by text, as queries
	queries  map[string]*sql.Stmt
	args     []driver.NamedValue // of the command that runs
	extents  extents
}

// background is the context of statements that must not be interrupted.
var background = context.Background()

func newWriter(ctx context.Context, s *Store) (*writer, error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, conn: conn, commands: map[string]*command{}, queries: map[string]*sql.Stmt{}, extents: extents{byID: map[string]sqlstore.Extent{}}}
	for _, text := range columns {
		statement, err := conn.PrepareContext(ctx, text)
		if err == nil {
			err = statement.Close() // open, it would hold memory that SQLite reserves for those in use
		}
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// columns name the columns of the tables, so that Open finds a table whose definition
// is damaged.
var columns = []string{
	"SELECT " + sqlstore.Columns + ", folded FROM conversations",
	"SELECT seq, conversation, position, id, kind, line, parts, size, sum FROM canisters",
	"SELECT conversation, position, place, content FROM parts",
	"SELECT key, hash, body FROM contents",
}

// close releases the connection. A statement left open would keep SQLite from closing
// the file and from emptying the write-ahead log.
func (w *writer) close() error {
	err := w.closeCommands()
	for _, statement := range w.queries {
		err = errors.Join(err, statement.Close())
	}
	return errors.Join(err, w.conn.Close())
}

// indexDelay is how long the writer must be idle before texts are indexed.
const indexDelay = 200 * time.Millisecond

// run writes until the store is closed. It indexes while idle.
func (w *writer) run() {
	defer close(w.store.ended)
	idle := time.NewTimer(0)
	defer idle.Stop()
	for {
		select {
		case <-w.store.common.Closing:
			return
		case j := <-w.store.jobs:
			w.serve(w.gather(j))
			idle.Reset(indexDelay)
		case <-idle.C:
			if next := w.indexMore(); next >= 0 {
				idle.Reset(next)
			}
		}
	}
}

// gather returns the job with the other waiting ones.
func (w *writer) gather(first *job) []*job {
	jobs := []*job{first}
	runtime.Gosched() // callers that just got a result may ask again
	for len(jobs) < w.store.group {
		select {
		case j := <-w.store.jobs:
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
	return jobs
}

// serve runs the jobs in one transaction. If the database fails, the transaction has no
// effect, and each job is retried on its own, so that one that does not fit on the disk
// does not block the others.
func (w *writer) serve(jobs []*job) {
	if err := w.lock(jobs); err != nil {
		for _, j := range jobs {
			j.done <- cmp.Or(j.ctx.Err(), w.store.explain("", err))
		}
		return
	}
	verdicts, err := w.transact(jobs)
	if err != nil && len(jobs) > 1 {
		for _, j := range jobs {
			w.serve([]*job{j})
		}
		return
	}
	for i, j := range jobs {
		j.done <- cmp.Or(w.store.explain("", err), verdicts[i])
	}
}

// lock begins a transaction with the write lock. It waits for other programs that
// write, as long as the context of one of the jobs lasts.
func (w *writer) lock(jobs []*job) error {
	for slices.ContainsFunc(jobs, func(j *job) bool { return j.ctx.Err() == nil }) {
		_, err := w.Exec(background, "BEGIN IMMEDIATE")
		if err == nil {
			return w.begun()
		}
		if !isBusy(err) {
			return err
		}
		if w.store.common.Closed() {
			return history.ErrClosed
		}
	}
	return context.Canceled
}

// begun notices that another connection has changed the database since the last transaction.
func (w *writer) begun() error {
	var version int64
	err := w.Row(background, "PRAGMA data_version").Scan(&version)
	if err != nil {
		return w.end(err)
	}
	w.extents.begin(version)
	return nil
}

// transact runs the jobs, ends the transaction and returns their verdicts.
func (w *writer) transact(jobs []*job) (verdicts []error, err error) {
	verdicts = make([]error, len(jobs))
	for i, j := range jobs {
		if verdicts[i] = j.ctx.Err(); verdicts[i] != nil {
			continue
		}
		if verdicts[i], err = j.do(w); err != nil {
			break
		}
	}
	return verdicts, w.end(err)
}

// end commits the transaction, or rolls it back after an error.
func (w *writer) end(err error) error {
	if err == nil {
		_, err = w.Exec(background, "COMMIT")
	}
	if err != nil {
		clear(w.extents.byID)
		_, _ = w.Exec(background, "ROLLBACK") // fails if SQLite has already rolled back
	}
	return err
}

// indexMore indexes a few canisters, and returns when to do so again, or a negative
// value for never. It ignores errors, because the next search fails with them too and
// reports them.
func (w *writer) indexMore() time.Duration {
	if _, err := w.Exec(background, "BEGIN IMMEDIATE"); isBusy(err) {
		return indexDelay
	} else if err != nil {
		return -1
	}
	more, err := w.index()
	if w.end(err) != nil || !more {
		return -1
	}
	return 0
}
