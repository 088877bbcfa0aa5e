// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/raced"
)

// durableLimits are the greatest numbers of allocations and bytes that a store may add to a
// turn. They are a tenth above those of .ci/bench, which do not depend on the load of the
// machine. Lower them when a store needs less.
var durableLimits = map[string]struct{ allocs, bytes float64 }{
	"memory": {37, 3_000},
	"sqlite": {370, 21_000},
	"files":  {305, 27_500},
}

// TestDurableTurnsStayCheap compares turns with and without a store.
func TestDurableTurnsStayCheap(t *testing.T) { checkDurable(t, newDurableRoster(t)) }

// checkDurable is also run by BenchmarkDurable, without the race detector: with it, a
// sync.Pool loses buffers at random, so only allocations are compared, and a fifth more of them are
// allowed. The cheapest of some rounds counts.
func checkDurable(t testing.TB, roster *ensemble.Roster) {
	t.Helper()
	const limitRounds = 3
	least := func(open func(testing.TB) (history.Store, error)) (allocs, bytes float64) {
		const conversations = 10
		durableRound(t, roster, open, 1) // warms up
		allocs, bytes = math.Inf(1), math.Inf(1)
		for range limitRounds {
			c := durableRound(t, roster, open, conversations)
			allocs = min(allocs, float64(c.mallocs)/(conversations*durableTurns))
			bytes = min(bytes, float64(c.bytes)/(conversations*durableTurns))
		}
		return allocs, bytes
	}
	allocs, bytes := least(nil)
	for _, store := range durableStores {
		limit, ok := durableLimits[store.name]
		if !ok {
			continue
		}
		if raced.Enabled {
			limit.allocs *= 1.2
		}
		a, b := least(store.open)
		a, b = a-allocs, b-bytes
		t.Logf("%s: a turn has %.0f allocations and %.0f bytes more", store.name, a, b)
		if a > limit.allocs || b > limit.bytes && !raced.Enabled {
			t.Errorf("%s: a turn has %.0f allocations and %.0f bytes more than without a log; it may have %.0f and %.0f",
				store.name, a, b, limit.allocs, limit.bytes)
		}
	}
}
