// SPDX-License-Identifier: Apache-2.0

package storetest

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
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/ledgerrace"
	"github.com/consort-go/consort/internal/testing/parallelism"
	"github.com/consort-go/consort/internal/testing/ramdisk"
)

// Store is a store that processes share, with its ledger.
type Store interface {
	history.Store
	Ledger() budget.Ledger
}

// The variables that pass another process the location of the store and its task.
const (
	placeVariable = "CONSORT_TEST_STORE"
	taskVariable  = "CONSORT_TEST_TASK"
)

// Main is the TestMain of a package whose test program also runs as the other process.
// Open opens the store at a location.
func Main(m *testing.M, open func(place string) (Store, error)) {
	place := os.Getenv(placeVariable)
	if place == "" {
		ramdisk.Use()
		parallelism.Set("6")
		os.Exit(m.Run())
	}
	if err := serve(place, os.Getenv(taskVariable), open); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func serve(place, task string, open func(place string) (Store, error)) error {
	s, err := open(place)
	if err != nil {
		return err
	}
	name, spends := strings.CutPrefix(task, "spend ")
	switch {
	case task == "write":
		return writeForEver(s)
	case spends:
		err = ledgerrace.Spend(s.Ledger(), name, os.Stdout)
	default:
		err = writeTogether(s, task)
	}
	return errors.Join(err, s.Close())
}

// Command returns the command that runs this program as another process, for the store at
// place. The process does task: "spend NAME" runs [ledgerrace.Spend].
func Command(t *testing.T, place, task string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), placeVariable+"="+place, taskVariable+"="+task)
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts another process and returns its output.
func start(t *testing.T, place, task string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := Command(t, place, task)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// writers is how many goroutines write in the process that is killed, each to a
// conversation of its own.
const writers = 6

// writeForEver appends to several conversations, two canisters at a time, and prints each
// acknowledged append.
func writeForEver(s history.Store) error {
	failed := make(chan error)
	for i := range writers {
		go func() {
			conversation := fmt.Sprint("talk", i)
			for n := 0; ; n += 2 {
				err := s.Append(context.Background(), conversation, n, Numbered(n), Numbered(n+1))
				if err != nil {
					failed <- err
				}
				fmt.Println(conversation, n+2) // one write, so one line
			}
		}()
	}
	return <-failed
}

// Numbered returns the canister for a place. Every third one is long.
func Numbered(n int) canister.Canister {
	text := fmt.Sprint("number ", n)
	if n%3 == 0 {
		text += strings.Repeat(" and more", 200)
	}
	return Says(fmt.Sprint("c", n), text)
}

// CheckNumbered checks that a conversation consists of the first Numbered canisters, and
// returns how many there are.
func CheckNumbered(t *testing.T, s history.Store, conversation string) int {
	t.Helper()
	n := 0
	for c, err := range s.Read(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want := Numbered(n); c.Header().ID != want.Header().ID || history.TextOf(c) != history.TextOf(want) {
			t.Fatalf("canister %d of %s is %s", n, conversation, c.Header().ID)
		}
		n++
	}
	return n
}

// Killed starts a process that writes to the store at place and kills it after a number
// of appends, when each conversation has one. It checks that no acknowledged append is lost and that no append is
// partial, both in a store that was open meanwhile and in one that is opened afterwards.
// The former must still accept appends.
func Killed(t *testing.T, place string, open func() Store, appends int) {
	beside := open()
	acknowledged := killed(t, place, appends)
	for i := range writers {
		conversation := fmt.Sprint("talk", i)
		// One append may still be in progress: this write waits for it.
		if err := beside.Describe(t.Context(), conversation, history.Change{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []history.Store{open(), beside} {
		for i := range writers {
			conversation := fmt.Sprint("talk", i)
			n := CheckNumbered(t, s, conversation)
			// One append may have been made, but not acknowledged.
			if was := acknowledged[conversation]; n != was && n != was+2 {
				t.Errorf("%s has %d canisters, and %d were acknowledged", conversation, n, was)
			}
			if s == beside {
				if err := s.Append(t.Context(), conversation, n, Numbered(n)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// killed starts the process that keeps writing, kills it after a number of appends, when each
// writer has made one, and returns the acknowledged length of each conversation.
func killed(t *testing.T, place string, appends int) map[string]int {
	t.Helper()
	cmd, out := start(t, place, "write")
	acknowledged, isKilled := map[string]int{}, false
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var conversation string
		var length int
		if _, err := fmt.Sscan(lines.Text(), &conversation, &length); err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		acknowledged[conversation] = length
		if n >= appends && len(acknowledged) == writers && !isKilled {
			isKilled = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the process ended with %v", err)
	}
	return acknowledged
}

const together = 60 // canisters of each concurrent writer

// writeTogether appends canisters with a name to a conversation that others append to as
// well.
func writeTogether(s history.Store, name string) error {
	length := 0
	for n := 0; n < together; {
		err := s.Append(context.Background(), "talk", length, Says(fmt.Sprint(name, n), name))
		if conflict, ok := errors.AsType[*history.ConflictError](err); ok {
			length = conflict.Length
			continue
		} else if err != nil {
			return err
		}
		length++
		n++
	}
	return nil
}

// Together starts two processes and opens two stores in this process, which all append to
// one conversation at place, and may have to create its tables or files. It checks that
// they take turns: no canister is lost or duplicated, and the only error is a conflict
// with another writer.
func Together(t *testing.T, place string, open func(place string) (Store, error)) {
	var wait sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		cmd, out := start(t, place, name)
		wait.Go(func() {
			said, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil || len(said) > 0 {
				t.Errorf("process %s: %v; it says %s", name, err, said)
			}
		})
	}
	for _, name := range []string{"c", "d"} {
		wait.Go(func() {
			if err := serve(place, name, open); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	s, err := open(place)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	next := map[string]int{}
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
	if len(next) != 4 || next["a"] != together || next["b"] != together || next["c"] != together || next["d"] != together {
		t.Errorf("there are %v", next)
	}
}
