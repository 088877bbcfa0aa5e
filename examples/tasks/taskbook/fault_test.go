// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
	sqlite3 "modernc.org/sqlite/lib"
)

// tell checks the failure that the model receives for a fault: a code, whether a retry
// helps, and no details of the database. The cause is for logs.
func tell(t *testing.T, err error, path string, want invoker.Code, retryable bool) {
	t.Helper()
	if err == nil {
		t.Error("no failure")
		return
	}
	failure := invoker.AsFailure(err)
	if failure.Code != want || failure.Retryable != retryable || failure.Cause == nil {
		t.Errorf("%v; retryable %v, cause %v", failure, failure.Retryable, failure.Cause)
	}
	for _, secret := range []string{path, "/", ".db", "SQL", "sql", "INSERT", "user_id", "(", fmt.Sprint(failure.Cause)} {
		if strings.Contains(failure.Message, secret) {
			t.Errorf("the model is told %q: %s", secret, failure.Message)
		}
	}
}

func TestAFileThatIsLocked(t *testing.T) {
	book, path := open(t)
	book.patience = 300 * time.Millisecond
	add(t, book, 1, "before")
	other := raw(t, path)
	run(t, other, "BEGIN EXCLUSIVE")
	_, err := book.AddTask(as(t, 1), NewTask{"meanwhile"})
	tell(t, err, path, invoker.Unavailable, true)
	if got := list(t, book, 1); len(got) != 1 {
		t.Errorf("readers see %+v", got)
	}
	run(t, other, "COMMIT")
	add(t, book, 1, "after")
	add(t, openAt(t, path), 1, "in another book")
}

// A transaction has the lock from its beginning, and nothing but a transaction
// can write.
func TestOneWriter(t *testing.T) {
	book, path := open(t)
	err := book.transact(t.Context(), func(*sql.Tx) error {
		if _, err := raw(t, path).ExecContext(t.Context(), "BEGIN IMMEDIATE"); !isBusy(err) {
			t.Errorf("a second writer: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := book.read.ExecContext(t.Context(), "DELETE FROM tasks"); codeOf(err) != sqlite3.SQLITE_READONLY {
		t.Errorf("a reader writes: %v", err)
	}
}

// A book that waits for a lock gets it as soon as it is free.
func TestWaitingForALock(t *testing.T) {
	book, path := open(t)
	book.patience = time.Minute
	other := raw(t, path)
	run(t, other, "BEGIN IMMEDIATE")
	added := make(chan error, 1)
	go func() {
		_, err := book.AddTask(as(t, 1), NewTask{"patient"})
		added <- err
	}()
	select {
	case err := <-added:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(3 * nap): // longer than SQLite itself waits
	}
	run(t, other, "COMMIT")
	if err := <-added; err != nil {
		t.Error(err)
	}
}

// A caller that waits for a lock leaves when its context ends.
func TestLeavingWhileTheFileIsLocked(t *testing.T) {
	book, path := open(t)
	book.patience = time.Minute
	other := raw(t, path)
	run(t, other, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(as(t, 1), 2*nap)
	defer cancel()
	began := time.Now()
	_, err := book.AddTask(ctx, NewTask{"impatient"})
	tell(t, err, path, invoker.Timeout, true)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	run(t, other, "COMMIT")
	if got := list(t, book, 1); len(got) != 0 {
		t.Errorf("it was added all the same: %+v", got)
	}
}

func TestADiskThatIsFull(t *testing.T) {
	book, path := open(t)
	run(t, book.write, "PRAGMA max_page_count = 8")
	var err error
	kept := 0
	for ; err == nil && kept < 1000; kept++ {
		_, err = book.AddTask(as(t, 1), NewTask{strings.Repeat("x", 500)})
	}
	tell(t, err, path, invoker.Unavailable, false)
	if got := list(t, book, 1); len(got) != kept-1 {
		t.Errorf("%d tasks are kept, %d were added", len(got), kept-1)
	}
	run(t, book.write, "PRAGMA max_page_count = 1000000")
	add(t, book, 1, "there is room again")
}

func TestAFileThatMayOnlyBeRead(t *testing.T) {
	book, path := open(t)
	task := add(t, book, 1, "before")
	run(t, book.write, "PRAGMA query_only = 1")
	_, err := book.DeleteTask(as(t, 1), Which{task.ID})
	tell(t, err, path, invoker.Unavailable, false)
	if got := list(t, book, 1); len(got) != 1 {
		t.Errorf("it has %+v", got)
	}
}

// The pages of the database are overwritten from outside.
func TestAFileThatIsDamaged(t *testing.T) {
	book, path := open(t)
	for range 500 {
		add(t, book, 1, strings.Repeat("x", 100))
	}
	run(t, book.write, "PRAGMA wal_checkpoint(TRUNCATE)")
	noise := make([]byte, 16*1024)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(noise, 4096); err != nil {
		t.Fatal(err)
	}
	damaged, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err) // its first page is whole
	}
	defer damaged.Close()
	_, err = damaged.ListTasks(as(t, 1), Filter{})
	tell(t, err, path, invoker.ExecutionFailed, false)
	_, err = damaged.AddTask(as(t, 1), NewTask{"x"})
	tell(t, err, path, invoker.ExecutionFailed, false)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(t.Context(), path); err == nil {
		again.Close()
		t.Error("half a page is no database")
	}
}

// A table that is gone is a mistake of an operator, and none of the model's
// business.
func TestATableThatIsGone(t *testing.T) {
	book, path := open(t)
	run(t, raw(t, path), "DROP TABLE tasks")
	_, err := book.AddTask(as(t, 1), NewTask{"x"})
	tell(t, err, path, invoker.ExecutionFailed, false)
	_, err = book.ListTasks(as(t, 1), Filter{})
	tell(t, err, path, invoker.ExecutionFailed, false)
}

func TestABookThatIsClosed(t *testing.T) {
	book, path := open(t)
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := book.AddTask(as(t, 1), NewTask{"x"})
	tell(t, err, path, invoker.ExecutionFailed, false)
	_, err = book.ListTasks(as(t, 1), Filter{})
	tell(t, err, path, invoker.ExecutionFailed, false)
}

func TestAContextThatEndedBefore(t *testing.T) {
	book, _ := open(t)
	ctx, cancel := context.WithCancel(as(t, 1))
	cancel()
	if _, err := book.AddTask(ctx, NewTask{"x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := list(t, book, 1); len(got) != 0 {
		t.Errorf("it has %+v", got)
	}
	if _, err := Open(ctx, t.TempDir()+"/x.db"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
