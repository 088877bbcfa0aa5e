// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// The test program is also the other process.
func TestMain(m *testing.M) { storetest.Main(m, openDSN) }

func openDSN(dsn string) (storetest.Store, error) { return Open(context.Background(), dsn, nil) }

// A process that is killed while it writes loses nothing that was acknowledged.
func TestKilledWhileWriting(t *testing.T) {
	for round := range 2 {
		dsn := pgtest.DSN(t)
		storetest.Killed(t, dsn, func() storetest.Store { return openAt(t, dsn, nil) }, 150+70*round)
	}
}

// Processes that write to one conversation, and make its tables, take turns.
func TestProcessesTogether(t *testing.T) {
	storetest.Together(t, pgtest.DSN(t), openDSN)
}

const appenders = 6 // while the server ends

// Of many that make the same conversation at once, one does, and the others
// are told so.
func TestOneMakesIt(t *testing.T) {
	dsn := pgtest.DSN(t)
	stores := []*Store{openAt(t, dsn, nil), openAt(t, dsn, nil)}
	for round := range 10 {
		var wait sync.WaitGroup
		var won, conflicts atomic.Int32
		for i := range 8 {
			wait.Go(func() {
				err := stores[i%2].Append(t.Context(), fmt.Sprint("talk", round), 0, storetest.Says(fmt.Sprint("c", i), "x"))
				if _, ok := errors.AsType[*history.ConflictError](err); ok {
					conflicts.Add(1)
				} else if err == nil {
					won.Add(1)
				} else {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if won.Load() != 1 || conflicts.Load() != 7 {
			t.Errorf("%d made it, and %d were told that somebody else did", won.Load(), conflicts.Load())
		}
	}
}

// A server that stops, or is killed, in the middle of appends loses nothing that
// was acknowledged. What the appends say is clear, the same again makes it good,
// and the store goes on with the server that is started again.
func TestServerEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	for name, end := range map[string]func(testing.TB){"stop": server.Stop, "kill": server.Kill} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, dsn, &Options{Timeout: 20 * time.Second})
			var wait sync.WaitGroup
			var acknowledged [appenders]atomic.Int32
			up := make(chan struct{})
			for i := range appenders {
				wait.Go(func() {
					for n := 0; n < 150; {
						err := s.Append(t.Context(), fmt.Sprint(name, i), n, storetest.Numbered(n), storetest.Numbered(n+1))
						if err == nil {
							n += 2
							acknowledged[i].Store(int32(n))
							continue
						}
						if !strings.Contains(err.Error(), "the connection was lost") && !strings.Contains(err.Error(), "the server cannot be reached") &&
							!strings.Contains(err.Error(), "the server is st") && !strings.Contains(err.Error(), "the server has crashed") {
							t.Errorf("an append is told %v", err)
						}
						<-up // and then the same again
					}
				})
			}
			until(t, "each has written something", func() bool {
				for i := range acknowledged {
					if acknowledged[i].Load() < 10 {
						return false
					}
				}
				return true
			})
			end(t)
			_, err := s.Info(t.Context(), name+"0")
			if err == nil || !strings.Contains(err.Error(), "cannot be reached") && !strings.Contains(err.Error(), "connection was lost") {
				t.Errorf("without a server: %v", err)
			}
			server.Start(t)
			close(up)
			wait.Wait()
			for i := range appenders {
				if n := storetest.CheckNumbered(t, s, fmt.Sprint(name, i)); n != 150 {
					t.Errorf("writer %d has %d canisters, want 150", i, n)
				}
			}
		})
	}
}

// A connection that died while it was unused does not affect callers.
func TestConnectionsThatDied(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "x")
	for range 5 {
		harm(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if got := storetest.Texts(t, s, "talk"); len(got) != 1 {
			t.Errorf("there is %q", got)
		}
	}
	conns := s.pool.AcquireAllIdle(t.Context())
	for _, conn := range conns {
		conn.Release()
	}
	other := openAt(t, s.pool.Config().ConnString(), nil)
	harm(t, other, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 {
		t.Errorf("a reader has %q", got)
	}
}

// A long conversation is read a little at a time, also its end, and copied and
// deleted.
func TestHundredThousand(t *testing.T) {
	length := 100_000
	if testing.Short() {
		length = 10_000
	}
	s := open(t)
	list := make([]canister.Canister, length)
	for i := range list {
		list[i] = storetest.Says(fmt.Sprint("c", i), fmt.Sprint("this is number ", i))
	}
	for i := 0; i < length; i += 10_000 { // the server ends a transaction in which this program computes for 5 s
		if err := s.Append(t.Context(), "talk", i, list[i:i+10_000]...); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for c, err := range s.Read(t.Context(), "talk", 0) {
		if err != nil || c.Header().ID != fmt.Sprint("c", n) {
			t.Fatal(n, err)
		}
		n++
	}
	tail, err := storetest.Read(t.Context(), s, "talk", length-3)
	if n != length || len(tail) != 3 || err != nil {
		t.Errorf("%d canisters, and %d at the end; %v", n, len(tail), err)
	}
	if err := s.Append(t.Context(), "talk", 0, list...); err != nil { // all are there
		t.Error(err)
	}
	if got := storetest.Find(t, s, history.Filter{Text: fmt.Sprint(length - 1)}); got != "talk" {
		t.Errorf("found %q", got)
	}
	if err := errors.Join(s.Fork(t.Context(), "talk", length, "fork"), s.Delete(t.Context(), "talk", history.AnyLength)); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(t.Context(), "fork"); err != nil || info.Length != length || count(t, s, "canisters") != length {
		t.Errorf("%+v, %v", info, err)
	}
}
