// SPDX-License-Identifier: Apache-2.0

package models

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/converse/history/historytest"
)

var seed = flag.Uint64("seed", 0, "the only conversation of each test; 0 for all")

// count returns how many conversations a test has.
func count(t *testing.T) uint64 {
	text := os.Getenv(historytest.HistoriesVariable)
	if text == "" {
		return 20
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", historytest.HistoriesVariable, err)
	}
	return n
}

// eachLife runs lives with the servers of some APIs, and logs what happened in them.
func eachLife(t *testing.T, apis ...string) {
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = seeds[:0]
		for n := range count(t) {
			seeds = append(seeds, n+1)
		}
	}
	requests, seen := 0, map[string]int{}
	for _, n := range seeds {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("this was the conversation of seed %d: go test -run '^%s$' ./internal/checks/models -seed %d", n, t.Name(), n)
				}
			}()
			l := newLife(t, n, apis...)
			l.live()
			requests += l.end()
			for what, times := range l.seen {
				seen[what] += times
			}
		})
	}
	t.Logf("%d conversations, %d requests, none refused", len(seeds), requests)
	for _, what := range append(slices.Clone(happenings), slices.Sorted(maps.Keys(marks[apis[0]]))...) {
		t.Logf("%s: %d", what, seen[what])
		if seen[what] == 0 && len(seeds) >= many {
			t.Errorf("none of these conversations had %s", what)
		}
	}
}

// many is a number of conversations in which everything happens.
const many = 300

// happenings must occur in many conversations, in addition to the marks of requests.
var happenings = []string{"killed", "unknown outcome", "forked", "repaired", "compacted", "left", "retried", "moved to another model", "answered"}

// TestHistoriesAreNotRefused: whatever models, tools and people do, and wherever
// conversations are interrupted, killed, forked, shortened or repaired, a server that is as
// strict as the real one accepts each request.
func TestHistoriesAreNotRefused(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			eachLife(t, api)
		})
	}
}

// TestChangesOfProvider: a conversation that changes from one API, host and model to
// another, in any order, is accepted by each, and none receives the signatures, encrypted
// texts or numbers of another.
func TestChangesOfProvider(t *testing.T) {
	t.Parallel()
	eachLife(t, apis...)
}
