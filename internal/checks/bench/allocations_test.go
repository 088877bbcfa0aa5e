// SPDX-License-Identifier: Apache-2.0

//go:build !race

package bench

import "testing"

// TestAllocations: what an exchange allocates does not grow. Unlike CPU and time, it does not
// depend on what else the machine does; with the race detector it differs.
func TestAllocations(t *testing.T) { checkAllocations(t) }

// BenchmarkAllocations is TestAllocations for .ci/run, whose tests have the race detector.
func BenchmarkAllocations(b *testing.B) {
	for b.Loop() {
		checkAllocations(b)
	}
}

// checkAllocations measures exchanges with one call of a server over stdio, in turns of 20. The
// limits are a twentieth above what was measured; lower them when it becomes less.
func checkAllocations(tb testing.TB) {
	tb.Helper()
	for _, limit := range []struct {
		stream        bool
		allocs, bytes float64
	}{{false, 273, 32_000}, {true, 293, 34_900}} {
		w := &work{stream: limit.stream}
		got := turns(20, 10)(tb, &working{hand: w.side(tb, "consort", launchModel(tb, scriptOf(20, 1)))})
		if got["allocs"] > limit.allocs || got["bytes"] > limit.bytes {
			tb.Errorf("an exchange (streamed: %v) makes %.0f allocations of %.0f bytes; the limits are %.0f and %.0f", limit.stream, got["allocs"], got["bytes"], limit.allocs, limit.bytes)
		}
	}
}
