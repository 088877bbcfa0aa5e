// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/parallelism"
)

func TestMain(m *testing.M) {
	if os.Getenv(Variable) != "" { // a cell over stdio started this as its server
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	parallelism.Set("16")
	os.Exit(m.Run())
}

// TestMatrix plays every cell.
func TestMatrix(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	dir := t.TempDir()
	healthy, err := StartHTTP(Script{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("cells", func(t *testing.T) { // returns when all of them have
		for _, c := range cells() {
			t.Run(c.name(), func(t *testing.T) {
				if !c.computes() {
					t.Parallel()
				}
				stage := newStage(t, c, healthy, dir)
				compare(t, c.outcome, stage.play(), stage.triedAgain())
			})
		}
	})
	if err := healthy.Close(); err != nil {
		t.Errorf("close the healthy server: %v", err)
	}
	left := func() bool { return runtime.NumGoroutine() > goroutines }
	for end := time.Now().Add(bound); left(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left, there were %d:\n%s", runtime.NumGoroutine(), goroutines, stacks())
		}
	}
}

// compare checks that seen is the outcome that the matrix states. Where it says that the
// server could not be reached, the call may have succeeded if the ensemble tried again.
func compare(t *testing.T, want, seen outcome, triedAgain bool) {
	t.Helper()
	if triedAgain && want.Call == "TOOL_NOT_FOUND" && seen.Call == ok {
		want.Call, want.Effects = ok, "1"
	}
	for _, fact := range []struct{ what, want, seen string }{
		{"the call came to", want.Call, seen.Call},
		{"its effects are", want.Effects, seen.Effects},
		{"the call beside it came to", want.Sibling, seen.Sibling},
		{"the connection is", want.Connection, seen.Connection},
		{"calls succeed again", want.Back, seen.Back},
	} {
		sooner := fact.want == soon && fact.seen == atOnce
		if !allows(fact.want, fact.seen) && !sooner {
			t.Errorf("%s %q, want %q", fact.what, fact.seen, fact.want)
		}
	}
}

func stacks() []byte {
	text := make([]byte, 64<<10)
	return text[:runtime.Stack(text, true)]
}

// TestComplete finds out whether the matrix has every cell there is, once.
func TestComplete(t *testing.T) {
	type key struct {
		fault Fault
		via   transport
		when  moment
		at    Place
	}
	var want, got []key
	for _, info := range Faults() {
		for _, via := range []transport{overStdio, overHTTP} {
			places := moments(info, via)
			for _, when := range []moment{connecting, idle, inCall, parallel} {
				for _, at := range places[when] {
					want = append(want, key{info.Fault, via, when, at})
				}
			}
		}
	}
	for _, c := range cells() {
		got = append(got, key{c.Fault, c.Via, c.When, c.At})
	}
	for _, k := range want {
		if !slices.Contains(got, k) {
			t.Errorf("the matrix lacks %v", k)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the matrix has %d cells, want %d: each once, and no other", len(got), len(want))
	}
}
