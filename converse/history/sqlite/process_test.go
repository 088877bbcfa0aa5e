// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// The test program is also the other process.
func TestMain(m *testing.M) {
	path, name := os.Getenv("CONSORT_SQLITE_FILE"), os.Getenv("CONSORT_SQLITE_WRITER")
	var err error
	switch {
	case path == "":
		os.Exit(m.Run())
	case name == "":
		err = writeForEver(path)
	case strings.HasPrefix(name, "spend "):
		err = spendTogether(path, name)
	default:
		err = writeTogether(path, name)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process starts this program as another one, and returns what it prints.
func process(t *testing.T, path, writer string) (*exec.Cmd, io.Reader) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "CONSORT_SQLITE_FILE="+path, "CONSORT_SQLITE_WRITER="+writer)
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

const killed = 6 // writers in the process that is killed

// writeForEver appends to several conversations, two canisters at a time, and
// prints each append that was acknowledged.
func writeForEver(path string) error {
	s, err := Open(path, nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range killed {
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

// A process that is killed while it writes loses nothing that was acknowledged,
// and leaves no part of an append. Readers and writers beside it go on.
func TestKilledWhileWriting(t *testing.T) {
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "talks.db")
		beside := openAt(t, path, nil)
		cmd, out := process(t, path, "")
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
		for _, s := range []*Store{openAt(t, path, nil), beside} {
			for i := range killed {
				conversation := fmt.Sprintf("talk%d", i)
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
				// One append may have been done, and not acknowledged.
				if was := acknowledged[conversation]; n != was && n != was+2 || was == 0 {
					t.Errorf("%s has %d canisters, and %d were acknowledged", conversation, n, was)
				}
				if s == beside {
					if err := s.Append(t.Context(), conversation, n, numbered(n)); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

const together = 100 // canisters of each of the processes that write together

// writeTogether appends canisters of a name to a conversation that others append
// to as well.
func writeTogether(path, name string) error {
	s, err := Open(path, nil)
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

// Two processes that write to one file wait for each other, also where they make
// it: nothing is lost, and nobody is told that the file is busy.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.db")
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		cmd, out := process(t, path, name)
		wait.Go(func() {
			said, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil || len(said) > 0 {
				t.Errorf("process %s: %v; it says %s", name, err, said)
			}
		})
	}
	if err := writeTogether(path, "c"); err != nil {
		t.Error(err)
	}
	wait.Wait()
	next := map[string]int{}
	s := openAt(t, path, nil)
	for c, err := range s.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		name := history.TextOf(c)
		if want := fmt.Sprint(name, next[name]); c.Header().ID != want {
			t.Errorf("%s stands where %s should", c.Header().ID, want)
		}
		next[name]++
	}
	if len(next) != 3 || next["a"] != together || next["b"] != together || next["c"] != together {
		t.Errorf("there are %v", next)
	}
}
