// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"testing"
	"time"
)

// TestLatency: the nearest rank, over the newest calls.
func TestLatency(t *testing.T) {
	var s stats
	if got := s.latency(); got != (Latency{}) {
		t.Errorf("without a call: %v", got)
	}
	add := func(from, to int) {
		for i := from; i <= to; i++ {
			s.beginCall()
			s.endCall(time.Duration(i), true)
		}
	}
	add(1, 1)
	if got := s.latency(); got != (Latency{1, 1, 1}) {
		t.Errorf("of one call: %v", got)
	}
	add(2, 100)
	if got := s.latency(); got != (Latency{100, 50, 99}) {
		t.Errorf("of a hundred calls: %v", got)
	}
	add(101, 300)
	if got := s.latency(); got != (Latency{300, 172, 298}) || len(s.took) != recentCalls {
		t.Errorf("of 300 calls: %v, %d kept", got, len(s.took))
	}
}
