// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/pgtest"
)

// The test program is also the other process.
func TestMain(m *testing.M) {
	dsn, name := os.Getenv("CONSORT_TEST_DSN"), os.Getenv("CONSORT_TEST_WRITER")
	var err error
	switch {
	case dsn == "":
		os.Exit(m.Run())
	case name == "":
		err = writeForEver(dsn)
	case strings.HasPrefix(name, "spend "):
		err = spendTogether(dsn, name)
	default:
		err = writeTogether(dsn, name)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process starts this program as another one, and returns what it prints.
func process(t *testing.T, dsn, writer string) (*exec.Cmd, io.Reader) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "CONSORT_TEST_DSN="+dsn, "CONSORT_TEST_WRITER="+writer)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

const writers = 6 // in the process that is killed

// writeForEver appends to several conversations, two canisters at a time, and
// prints each append that was acknowledged.
func writeForEver(dsn string) error {
	s, err := Open(context.Background(), dsn, nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range writers {
		go func() {
			conversation := fmt.Sprintf("talk%d", i)
			for n := 0; ; n += 2 {
				err := s.Append(context.Background(), conversation, n, numbered(n), numbered(n+1))
				if err != nil {
					failed <- err
				}
				fmt.Println(conversation, n+2) // one write, so one line
			}
		}()
	}
	return <-failed
}

// numbered is the canister at a place. Each third one is long.
func numbered(place int) canister.Canister {
	text := fmt.Sprint("number ", place)
	if place%3 == 0 {
		text += strings.Repeat(" and more", 200)
	}
	return says(fmt.Sprint("c", place), text)
}

// checkNumbered checks that a conversation is the first canisters, and returns
// how many.
func checkNumbered(t *testing.T, s *Store, conversation string) int {
	t.Helper()
	n := 0
	for c, err := range s.Read(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want := numbered(n); c.Header().ID != want.Header().ID || history.TextOf(c) != history.TextOf(want) {
			t.Fatalf("canister %d of %s is %s", n, conversation, c.Header().ID)
		}
		n++
	}
	return n
}

// A process that is killed while it writes loses nothing that was acknowledged,
// and leaves no part of an append. Readers and writers beside it go on.
func TestKilledWhileWriting(t *testing.T) {
	for round := range 2 {
		dsn := pgtest.DSN(t)
		beside := openAt(t, dsn, nil)
		cmd, out := process(t, dsn, "")
		acknowledged := map[string]int{}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var conversation string
			var length int
			if _, err := fmt.Sscan(lines.Text(), &conversation, &length); err != nil {
				t.Fatalf("the process says %q", lines.Text())
			}
			acknowledged[conversation] = length
			if n == 150+70*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("the process ended with %v", err)
		}
		for i := range writers {
			conversation := fmt.Sprintf("talk%d", i)
			// One append may be on its way still: who locks the row is behind it.
			if err := beside.Describe(t.Context(), conversation, history.Change{}); err != nil {
				t.Fatal(err)
			}
			// One append may have been done, and not acknowledged.
			n := checkNumbered(t, beside, conversation)
			if was := acknowledged[conversation]; n != was && n != was+2 || was == 0 {
				t.Errorf("%s has %d canisters, and %d were acknowledged", conversation, n, was)
			}
			if err := beside.Append(t.Context(), conversation, n, numbered(n)); err != nil {
				t.Error(err)
			}
		}
	}
}

const together = 60 // canisters of each of the processes that write together

// writeTogether appends canisters of a name to a conversation that others append
// to as well.
func writeTogether(dsn, name string) error {
	s, err := Open(context.Background(), dsn, nil)
	if err != nil {
		return err
	}
	length := 0
	for n := 0; n < together; {
		err := s.Append(context.Background(), "talk", length, says(fmt.Sprint(name, n), name))
		if conflict, ok := errors.AsType[*history.ConflictError](err); ok {
			length = conflict.Length
			continue
		} else if err != nil {
			return errors.Join(err, s.Close())
		}
		length++
		n++
	}
	return s.Close()
}

// Processes that write to one conversation, and make its tables, take turns:
// nothing is lost and nothing is twice.
func TestProcessesTogether(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		cmd, out := process(t, dsn, name)
		wait.Go(func() {
			said, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil || len(said) > 0 {
				t.Errorf("process %s: %v; it says %s", name, err, said)
			}
		})
	}
	for _, name := range []string{"c", "d"} { // and two pools of this one
		wait.Go(func() {
			if err := writeTogether(dsn, name); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	next := map[string]int{}
	for c, err := range openAt(t, dsn, nil).Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		name := history.TextOf(c)
		if want := fmt.Sprint(name, next[name]); c.Header().ID != want {
			t.Errorf("%s stands where %s should", c.Header().ID, want)
		}
		next[name]++
	}
	if len(next) != 4 || next["a"] != together || next["b"] != together || next["c"] != together || next["d"] != together {
		t.Errorf("there are %v", next)
	}
}

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
				err := stores[i%2].Append(t.Context(), fmt.Sprint("talk", round), 0, says(fmt.Sprint("c", i), "x"))
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
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	for name, end := range map[string]func(testing.TB){"stop": server.Stop, "kill": server.Kill} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, dsn, &Options{Timeout: 20 * time.Second})
			var wait sync.WaitGroup
			var acknowledged [writers]atomic.Int32
			up := make(chan struct{})
			for i := range writers {
				wait.Go(func() {
					for n := 0; n < 150; {
						err := s.Append(t.Context(), fmt.Sprint(name, i), n, numbered(n), numbered(n+1))
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
			for i := range writers {
				if n := checkNumbered(t, s, fmt.Sprint(name, i)); n != 150 {
					t.Errorf("writer %d has %d canisters, want 150", i, n)
				}
			}
		})
	}
}

// A connection that died while nobody used it is in nobody's way.
func TestConnectionsThatDied(t *testing.T) {
	s := open(t)
	add(t, s, "talk", 0, "x")
	for range 5 {
		harm(t, s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if got := texts(t, s, "talk"); len(got) != 1 {
			t.Errorf("there is %q", got)
		}
	}
	conns := s.pool.AcquireAllIdle(t.Context())
	for _, conn := range conns {
		conn.Release()
	}
	other := openAt(t, s.pool.Config().ConnString(), nil)
	harm(t, other, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if got := texts(t, s, "talk"); len(got) != 1 {
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
		list[i] = says(fmt.Sprint("c", i), fmt.Sprint("this is number ", i))
	}
	if err := s.Append(t.Context(), "talk", 0, list...); err != nil {
		t.Fatal(err)
	}
	n := 0
	for c, err := range s.Read(t.Context(), "talk", 0) {
		if err != nil || c.Header().ID != fmt.Sprint("c", n) {
			t.Fatal(n, err)
		}
		n++
	}
	tail, err := read(t.Context(), s, "talk", length-3)
	if n != length || len(tail) != 3 || err != nil {
		t.Errorf("%d canisters, and %d at the end; %v", n, len(tail), err)
	}
	if err := s.Append(t.Context(), "talk", 0, list...); err != nil { // all are there
		t.Error(err)
	}
	if got := find(t, s, history.Filter{Text: fmt.Sprint(length - 1)}); got != "talk" {
		t.Errorf("found %q", got)
	}
	if err := errors.Join(s.Fork(t.Context(), "talk", length, "fork"), s.Delete(t.Context(), "talk", history.AnyLength)); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(t.Context(), "fork"); err != nil || info.Length != length || count(t, s, "canisters") != length {
		t.Errorf("%+v, %v", info, err)
	}
}
