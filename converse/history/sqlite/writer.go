// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/consort-go/consort/converse/history"
)

// job is a write operation. If do returns a verdict it changes nothing, and only its
// caller gets the verdict; err is an error of the database.
type job struct {
	ctx  context.Context
	do   func(*writer) (verdict, err error)
	done chan error // buffered for the one result
}

// ask has the writer run do. If the context ends first, do may still run.
func (s *Store) ask(ctx context.Context, do func(*writer) (verdict, err error)) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	j := &job{ctx: ctx, do: do, done: make(chan error, 1)}
	select {
	case s.jobs <- j:
	case <-s.closing:
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

	begin, commit, rollback *sql.Stmt
	find, identity          *sql.Stmt
	create, extend          *sql.Stmt
	insert, part            *sql.Stmt
	content, contentOf      *sql.Stmt

	statements []*sql.Stmt // all of the above
}

// always is the context of statements that must not be interrupted.
var always = context.Background()

func newWriter(ctx context.Context, s *Store) (*writer, error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, conn: conn}
	for statement, text := range map[**sql.Stmt]string{
		&w.begin:    "BEGIN IMMEDIATE",
		&w.commit:   "COMMIT",
		&w.rollback: "ROLLBACK",
		&w.find:     "SELECT key, length FROM conversations WHERE id = ?",
		&w.identity: "SELECT id FROM canisters WHERE conversation = ? AND position = ?",
		&w.create: `INSERT INTO conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&w.extend:    "UPDATE conversations SET length = ?, last = ?, changed = ? WHERE key = ?",
		&w.insert:    "INSERT INTO canisters (conversation, position, id, kind, line, parts, size, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		&w.part:      "INSERT INTO parts (conversation, position, place, content) VALUES (?, ?, ?, ?)",
		&w.content:   "INSERT INTO contents (hash, body) VALUES (?, ?)",
		&w.contentOf: "SELECT key, body = ? FROM contents WHERE hash = ?",
	} {
		if *statement, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.statements = append(w.statements, *statement)
	}
	return w, nil
}

// close releases the connection. A statement left open would keep SQLite from closing
// the file and from emptying the write-ahead log.
func (w *writer) close() error {
	var err error
	for _, statement := range w.statements {
		err = errors.Join(err, statement.Close())
	}
	return errors.Join(err, w.conn.Close())
}

// pause is how long the writer must be idle before texts are indexed.
const pause = 200 * time.Millisecond

// run writes until the store is closed. It indexes while idle.
func (w *writer) run() {
	defer close(w.store.ended)
	idle := time.NewTimer(0)
	defer idle.Stop()
	for {
		select {
		case <-w.store.closing:
			return
		case j := <-w.store.jobs:
			w.serve(w.gather(j))
			idle.Reset(pause)
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
			j.done <- cmp.Or(j.ctx.Err(), w.store.fault(err))
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
		j.done <- cmp.Or(w.store.fault(err), verdicts[i])
	}
}

// lock begins a transaction with the write lock. It waits for other programs that
// write, as long as the context of one of the jobs lasts.
func (w *writer) lock(jobs []*job) error {
	for slices.ContainsFunc(jobs, func(j *job) bool { return j.ctx.Err() == nil }) {
		_, err := w.begin.ExecContext(always)
		if !isBusy(err) {
			return err
		}
		if w.store.closed() {
			return history.ErrClosed
		}
	}
	return context.Canceled
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
		_, err = w.commit.ExecContext(always)
	}
	if err != nil {
		_, _ = w.rollback.ExecContext(always) // fails if SQLite has already rolled back
	}
	return err
}

// indexMore indexes a few canisters, and returns when to do so again, or a negative
// value for never. It ignores errors, because the next search fails with them too and
// reports them.
func (w *writer) indexMore() time.Duration {
	if _, err := w.begin.ExecContext(always); isBusy(err) {
		return pause
	} else if err != nil {
		return -1
	}
	more, err := w.index()
	if w.end(err) != nil || !more {
		return -1
	}
	return 0
}
