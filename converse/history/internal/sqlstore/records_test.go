// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/records"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// eachDatabase runs a test with two stores of one database.
func eachDatabase(t *testing.T, test func(t *testing.T, one, other records.Table)) {
	type keeper interface {
		Records() records.Table
		Close() error
	}
	both := func(t *testing.T, open func() (keeper, error)) {
		var tables [2]records.Table
		for i := range tables {
			store, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			tables[i] = store.Records()
		}
		test(t, tables[0], tables[1])
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "talks.db")
		both(t, func() (keeper, error) { return sqlite.Open(path, nil) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		both(t, func() (keeper, error) { return postgres.Open(t.Context(), dsn, nil) })
	})
}

// all returns the records as a text.
func all(t *testing.T, table records.Table) string {
	t.Helper()
	stored, err := table.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for name, text := range stored {
		if one, err := table.Get(t.Context(), name); err != nil || string(one) != string(text) {
			t.Errorf("the record %s is %q, and %q in all: %v", name, one, text, err)
		}
		list = append(list, name+"="+string(text))
	}
	if none, err := table.Get(t.Context(), "none"); none != nil || err != nil {
		t.Errorf("a record that does not exist is %q, %v", none, err)
	}
	return strings.Join(list, " ")
}

func put(t *testing.T, table records.Table, name, text string) {
	t.Helper()
	if err := table.Update(t.Context(), name, func([]byte) ([]byte, error) { return []byte(text), nil }); err != nil {
		t.Fatal(err)
	}
}

func TestRecords(t *testing.T) {
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		put(t, one, "a", "1")
		refused := errors.New("refused")
		if err := other.Update(t.Context(), "a", func(before []byte) ([]byte, error) {
			if string(before) != "1" {
				t.Errorf("the other store sees %q", before)
			}
			return []byte("2"), refused
		}); err != refused {
			t.Error(err)
		}
		if got := all(t, other); got != "a=1" {
			t.Errorf("after a refusal: %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := other.Update(ctx, "a", func([]byte) ([]byte, error) { cancel(); return []byte("3"), nil }); err != nil || all(t, one) != "a=3" {
			t.Errorf("an update whose context ends: %v, %s", err, all(t, one))
		}
		if err := one.Update(t.Context(), "a", func([]byte) ([]byte, error) { return nil, nil }); err != nil || all(t, other) != "" {
			t.Errorf("a removal: %v, %s", err, all(t, other))
		}
		if err := other.Update(t.Context(), "a", func(before []byte) ([]byte, error) {
			if before != nil {
				t.Errorf("after the removal: %q", before)
			}
			return []byte("4"), nil
		}); err != nil || all(t, one) != "a=4" {
			t.Errorf("after the removal: %v, %s", err, all(t, one))
		}
	})
}

// TestRecordsOneAfterTheOther: no update of two stores runs beside another one.
func TestRecordsOneAfterTheOther(t *testing.T) {
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		var mu sync.Mutex
		var working sync.WaitGroup
		for _, table := range []records.Table{one, other} {
			for range 4 {
				working.Go(func() {
					for range 5 {
						if err := table.Update(t.Context(), "n", func(before []byte) ([]byte, error) {
							if !mu.TryLock() {
								return nil, errors.New("two updates at once")
							}
							defer mu.Unlock()
							return append(before, 'x'), nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		working.Wait()
		if got := all(t, one); got != "n="+strings.Repeat("x", 40) {
			t.Error(got)
		}
	})
}

// TestRecordOfADeadProcess: a record whose holder has died is changed by another one, and what
// the dead one stores after all does not overwrite it.
func TestRecordOfADeadProcess(t *testing.T) {
	sqlstore.SetStale(t, 100*time.Millisecond)
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		put(t, one, "a", "1")
		late := sqlstore.LockOnly(t, one.(sqlstore.Records), "a")
		put(t, other, "a", "2")
		if late("3") || all(t, one) != "a=2" {
			t.Errorf("what a dead process stores: %s", all(t, one))
		}
	})
}

// TestRecordOfASlowProcess: a holder that takes long is waited for.
func TestRecordOfASlowProcess(t *testing.T) {
	sqlstore.SetStale(t, 2*time.Second) // in which a busy machine stores a beat
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		put(t, one, "a", "1")
		began, end := make(chan struct{}), make(chan struct{})
		slow := make(chan error, 1)
		go func() {
			slow <- one.Update(t.Context(), "a", func(before []byte) ([]byte, error) {
				close(began)
				<-end
				return append(before, "+slow"...), nil
			})
		}()
		<-began
		time.AfterFunc(3*time.Second, func() { close(end) }) // longer than a dead process is waited for
		put(t, other, "b", "1")                              // another record does not wait
		if err := other.Update(t.Context(), "a", func(before []byte) ([]byte, error) { return append(before, "+next"...), nil }); err != nil {
			t.Error(err)
		}
		if err := <-slow; err != nil || !strings.Contains(all(t, one), "a=1+slow+next") {
			t.Errorf("%v, %s", err, all(t, one))
		}
	})
}

// TestRecordsWaitNotForEver: a wait for another process ends with the context.
func TestRecordsWaitNotForEver(t *testing.T) {
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		sqlstore.LockOnly(t, one.(sqlstore.Records), "a")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := other.Update(ctx, "a", func([]byte) ([]byte, error) { return nil, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestRecordAfterAPanic: a change that panics, and one that fails after a beat whose answer was lost, unlock the record.
func TestRecordAfterAPanic(t *testing.T) {
	sqlstore.SetStale(t, time.Hour) // a record that stays locked cannot be changed
	eachDatabase(t, func(t *testing.T, one, other records.Table) {
		put(t, one, "a", "1")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = one.Update(t.Context(), "a", func([]byte) ([]byte, error) { panic("boom") })
		}()
		if err := other.Update(t.Context(), "a", func(before []byte) ([]byte, error) { return append(before, '2'), nil }); err != nil || all(t, one) != "a=12" {
			t.Errorf("after a panic: %v, %s", err, all(t, one))
		}
		sqlstore.FailAfterLostBeat(t, one.(sqlstore.Records), "a")
		if err := other.Update(t.Context(), "a", func(before []byte) ([]byte, error) { return append(before, '3'), nil }); err != nil || all(t, one) != "a=123" {
			t.Errorf("after a lost beat: %v, %s", err, all(t, one))
		}
	})
}
