// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// hold has another connection hold the lock for writing, until the function that
// it returns is called.
func hold(t testing.TB, s *Store) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if err := retryWhileBusy(t.Context(), func() error { _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); return err }); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := db.ExecContext(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
	}
}

// asked returns jobs that have not been given to the writer.
func asked(ctx context.Context, n int, do func(i int, w *writer) (verdict, err error)) []*job {
	jobs := make([]*job, n)
	for i := range jobs {
		jobs[i] = &job{ctx: ctx, do: func(w *writer) (verdict, err error) { return do(i, w) }, done: make(chan error, 1)}
	}
	return jobs
}

// another returns a second writer of the file, which the test runs itself.
func another(t testing.TB, s *Store) *writer {
	t.Helper()
	second := &Store{common: s.common, path: s.path, group: s.group, clock: s.clock}
	var err error
	if second.write, err = connect(s.path, 1, "synchronous(2)"); err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close(); second.write.Close() })
	return w
}

// Appends that are committed together each have their own verdict.
func TestVerdicts(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "a", "b")
	release := hold(t, s) // everything arrives while the lock is held
	type try struct {
		conversation string
		length       int
		id           string
		want         string
	}
	tries := []try{
		{"talk", 0, "c0", ""}, // is there already
		{"talk", 0, "x", "2 canisters and not 0"},
		{"talk", 5, "c5", "2 canisters and not 5"},
		{"new", 0, "n", ""},
		{"none", 1, "m", "0 canisters and not 1"},
	}
	answers := make([]chan error, len(tries))
	for i, try := range tries {
		answers[i] = make(chan error, 1)
		go func() {
			answers[i] <- s.Append(t.Context(), try.conversation, try.length, storetest.Says(try.id, "text"))
		}()
	}
	race := make(chan error, 10)
	for i := range 10 {
		go func() { race <- s.Append(t.Context(), "talk", 2, storetest.Says(fmt.Sprint("r", i), "text")) }()
	}
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Append(gone, "left", 0, storetest.Says("l", "text")) }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left is told %v", err)
	}
	release()
	for i, try := range tries {
		err := <-answers[i]
		if try.want == "" && err != nil || try.want != "" && (err == nil || !strings.Contains(err.Error(), try.want)) {
			// the race may have gone before
			if _, ok := errors.AsType[*history.ConflictError](err); !ok || try.conversation != "talk" {
				t.Errorf("%+v: %v", try, err)
			}
		}
	}
	won := 0
	for range 10 {
		err := <-race
		if _, ok := errors.AsType[*history.ConflictError](err); err == nil {
			won++
		} else if !ok {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d appends to the same place won", won)
	}
}

// What fails in the database fails alone: the others of the same transaction
// are done, each once.
func TestAFailureInAGroup(t *testing.T) {
	s := open(t)
	w := another(t, s)
	fault := errors.New("the database fails")
	jobs := asked(t.Context(), 5, func(i int, w *writer) (verdict, err error) {
		if i == 3 {
			return nil, fault
		}
		r, err := sqlstore.RowOf(0, storetest.Says("c", "text"), []byte(`{"kind":"user","id":"c"}`))
		if err != nil {
			return nil, err
		}
		var key int64
		err = w.Row(background, `INSERT INTO conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			VALUES ($1, '', '', '[]', '', @now, @now, 1, 'user', '', 0) RETURNING key`, fmt.Sprint("talk", i)).Scan(&key)
		if err != nil {
			return nil, err
		}
		return nil, w.Insert(background, sqlstore.Extent{Key: key}, []sqlstore.Row{r})
	})
	w.serve(jobs)
	for i, j := range jobs {
		if err := <-j.done; (i == 3) != errors.Is(err, fault) || i != 3 && err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
	if got := storetest.Find(t, s, history.Filter{}); got != "talk0 talk1 talk2 talk4" {
		t.Errorf("there are %s", got)
	}
}

// A group has no more members than it may.
func TestAGroupIsBounded(t *testing.T) {
	s := &Store{group: 3, jobs: make(chan *job, 10)}
	for _, j := range asked(t.Context(), 10, nil) {
		s.jobs <- j
	}
	w := &writer{store: s}
	for _, want := range []int{3, 3, 3, 1} {
		if got := len(w.gather(<-s.jobs)); got != want {
			t.Errorf("a group of %d, want %d", got, want)
		}
	}
}

// A caller that waits for another program leaves when its context ends, and gets the lock
// when it is free. Readers do not wait.
func TestWaitingForAnotherProgram(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "before")
	release := hold(t, s)
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 {
		t.Errorf("readers have %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*busyTimeout)
	defer cancel()
	if err := s.Append(ctx, "talk", 1, storetest.Says("c1", "impatient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one is told %v", err)
	}
	added := make(chan error, 1)
	go func() { added <- s.Append(t.Context(), "talk", 1, storetest.Says("c2", "patient")) }()
	select {
	case err := <-added:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(3 * busyTimeout): // longer than SQLite itself waits
	}
	release()
	if err := <-added; err != nil {
		t.Error(err)
	}
	if got := storetest.Texts(t, s, "talk"); len(got) != 2 || got[1] != "patient" {
		t.Errorf("there is %q", got)
	}
}

// A caller leaves when its context ends, regardless of the state of the writer.
func TestLeavingTheWriter(t *testing.T) {
	s := &Store{jobs: make(chan *job), common: sqlstore.Store{Closing: make(chan struct{})}}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.submit(ctx, nil) }()
	<-s.jobs // and it is never done
	cancel()
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits still")
	}
}

// A store can be closed while it waits for another program.
func TestClosingWhileWaiting(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "talks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, s)
	defer release()
	added := make(chan error, 1)
	go func() { added <- s.Append(context.Background(), "talk", 0, storetest.Says("c", "text")) }()
	time.Sleep(2 * busyTimeout) // until the writer waits, which SQLite does for it
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it is not closed")
	}
	if err := <-added; !errors.Is(err, history.ErrClosed) {
		t.Error(err)
	}
}

// Written canisters are indexed without a search, when no writes are pending.
func TestIndexingWhenIdle(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, strings.Fields(strings.Repeat("word ", 3*indexRows))...)
	deadline := time.Now().Add(30 * time.Second)
	for upto := 0; upto < 3*indexRows; {
		if time.Now().After(deadline) {
			t.Fatalf("indexed up to %d", upto)
		}
		time.Sleep(10 * time.Millisecond) // for the pause of the writer, which is in another goroutine
		if err := s.read.QueryRowContext(t.Context(), "SELECT upto FROM indexed").Scan(&upto); err != nil {
			t.Fatal(err)
		}
	}
	// A damaged canister does not affect others.
	storetest.Add(t, s, "damaged", 0, "needle one")
	storetest.Add(t, s, "whole", 0, "needle two")
	harm(t, s, "UPDATE canisters SET line = 'x' WHERE conversation = 2")
	if got := storetest.Find(t, s, history.Filter{Text: "needle two"}); got != "whole" {
		t.Errorf("found %q", got)
	}
}

// harm changes the database without the store.
func harm(t testing.TB, s *Store, statement string, args ...any) {
	t.Helper()
	db, err := connect(s.path, 1, "synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = retryWhileBusy(t.Context(), func() error { _, err := db.ExecContext(t.Context(), statement, args...); return err })
	if err != nil {
		t.Fatal(err)
	}
}

// While one statement waits for a connection to be prepared, neither a known one nor a caller
// whose context ends waits with it.
func TestStatementsWaitAlone(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	s := &statements{db: db, of: map[string]*sql.Stmt{}}
	known, err := s.prepare(t.Context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	busy, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			statement, err := s.prepare(t.Context(), "SELECT 2")
			if err == nil {
				_, err = statement.ExecContext(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for db.Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if again, err := s.prepare(t.Context(), "SELECT 1"); err != nil || again != known {
			t.Errorf("a known statement: %v, %v", again, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := s.prepare(ctx, "SELECT 3"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another statement: %v", err)
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("they wait")
	}
	busy.Close()
	waiting.Wait()
	<-ended
}
