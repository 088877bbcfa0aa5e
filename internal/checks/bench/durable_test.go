// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/conversekit"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/invoker"
)

// A round of durable turns: that many conversations at once, each with a few turns of two
// exchanges and one call.
const (
	durableConversations = 200
	durableTurns         = 5
)

// durableStores open an empty store each. The first is what the others are compared with.
var durableStores = []struct {
	name string
	open func(tb testing.TB) (history.Store, error)
}{
	{"none", nil},
	{"memory", func(testing.TB) (history.Store, error) { return history.NewMemory(), nil }},
	{"sqlite", func(tb testing.TB) (history.Store, error) {
		return sqlite.Open(filepath.Join(tb.TempDir(), "conversations.db"), nil)
	}},
	{"files", func(tb testing.TB) (history.Store, error) { return files.Open(tb.TempDir(), nil) }},
	{"postgres", func(tb testing.TB) (history.Store, error) {
		return postgres.Open(context.Background(), pgtest.DSN(tb), nil)
	}},
}

// BenchmarkDurable measures turns that are stored while they run, and the same without a
// log. An iteration runs a round of each store, in random order; a ratio is that of one
// iteration. The CPU time is that of this process, without PostgreSQL's server.
func BenchmarkDurable(b *testing.B) {
	roster := newDurableRoster(b)
	conversations := durableConversations
	if testing.Short() {
		conversations = 20
	}
	rounds := map[string][]cost{}
	checkDurable(b, roster)
	for _, store := range durableStores { // warms up
		durableRound(b, roster, store.open, 20)
	}
	for b.Loop() {
		for _, i := range rand.Perm(len(durableStores)) {
			store := durableStores[i]
			rounds[store.name] = append(rounds[store.name], durableRound(b, roster, store.open, conversations))
		}
	}
	for _, store := range durableStores {
		reportDurable(b, store.name, float64(conversations*durableTurns), rounds[store.name], rounds[durableStores[0].name])
	}
}

// newDurableRoster connects the tool of the turns.
func newDurableRoster(tb testing.TB) *ensemble.Roster {
	tb.Helper()
	look, err := invoker.New("look", "Look something up.", func(context.Context, lookInput) (string, error) { return "Rain, 12 degrees.", nil }, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return newRoster(tb, ensemble.Local("tools", look))
}

// reportDurable reports the medians over the rounds of a store, each of so many turns, and the spread of the ratio
// of its CPU time to that of the base.
func reportDurable(b *testing.B, name string, turns float64, rounds, base []cost) {
	var rates, cpus, bytes, allocs, ratios []float64
	for i, c := range rounds {
		rates = append(rates, turns/c.time.Seconds())
		cpus = append(cpus, float64(c.cpu.Microseconds())/turns)
		bytes = append(bytes, float64(c.bytes)/1e3/turns)
		allocs = append(allocs, float64(c.mallocs)/turns)
		ratios = append(ratios, float64(c.cpu)/float64(base[i].cpu))
	}
	b.ReportMetric(median(rates), name+"-turns/s")
	b.ReportMetric(median(cpus), name+"-cpu-us/turn")
	b.ReportMetric(median(bytes), name+"-kB/turn")
	b.ReportMetric(median(allocs), name+"-allocs/turn")
	b.ReportMetric(median(ratios), name+"-cpu-ratio")
	b.ReportMetric(slices.Min(ratios), name+"-cpu-ratio-min")
	b.ReportMetric(slices.Max(ratios), name+"-cpu-ratio-max")
}

// durableRound returns the cost of the turns of a round, without opening the store.
func durableRound(tb testing.TB, roster *ensemble.Roster, open func(testing.TB) (history.Store, error), conversations int) cost {
	tb.Helper()
	var log history.Log
	if open != nil {
		store, err := open(tb)
		if err != nil {
			tb.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				tb.Error(err)
			}
		}()
		log = store
	}
	runtime.GC() // no round pays for the one before
	before := used()
	var all sync.WaitGroup
	for i := range conversations {
		all.Go(func() {
			talk := converse.New(conversekit.Instant(prefix+"look"), roster, &converse.Options{ID: fmt.Sprint("conversation ", i), Log: log})
			for range durableTurns {
				if turn, err := talk.Ask(context.Background(), canister.Text("What is the weather in Oslo?")); err != nil || turn.Invocations != 1 {
					tb.Errorf("turn = %+v, err = %v", turn, err)
					return
				}
			}
		})
	}
	all.Wait()
	after := used()
	return cost{after.time - before.time, after.cpu - before.cpu, after.mallocs - before.mallocs, after.bytes - before.bytes}
}
