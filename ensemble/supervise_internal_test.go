// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"testing"
	"time"
)

// TestRetryWait: from half to all of 1 s, 2 s, 4 s ... 30 s, as chance has it.
func TestRetryWait(t *testing.T) {
	e := New("e", nil, nil)
	for n := 1; n <= 100; n++ {
		e.setbacks = make([]time.Time, n)
		most := 30 * time.Second
		if n <= 5 {
			most = time.Second << (n - 1)
		}
		for _, chance := range []float64{0, 0.5, 1} {
			e.random = func() float64 { return chance }
			if got, want := e.retryWait(), most/2+time.Duration(chance*float64(most/2)); got != want {
				t.Errorf("after %d failures and with %v: %v, want %v", n, chance, got, want)
			}
		}
	}
}

// TestLatency: the nearest rank, over the newest calls.
func TestLatency(t *testing.T) {
	e := New("e", nil, nil)
	if got := e.tally.latency(); got != (Latency{}) {
		t.Errorf("without a call: %v", got)
	}
	add := func(from, to int) {
		for i := from; i <= to; i++ {
			e.beginCall()
			e.endCall(time.Duration(i), true)
		}
	}
	add(1, 1)
	if got := e.tally.latency(); got != (Latency{1, 1, 1}) {
		t.Errorf("of one call: %v", got)
	}
	add(2, 100)
	if got := e.tally.latency(); got != (Latency{100, 50, 99}) {
		t.Errorf("of a hundred calls: %v", got)
	}
	add(101, 300)
	if got := e.tally.latency(); got != (Latency{300, 172, 298}) || len(e.tally.took) != recentCalls {
		t.Errorf("of 300 calls: %v, %d kept", got, len(e.tally.took))
	}
}
