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
		e.supervisor.setbacks = make([]time.Time, n)
		most := 30 * time.Second
		if n <= 5 {
			most = time.Second << (n - 1)
		}
		for _, chance := range []float64{0, 0.5, 1} {
			e.supervisor.random = func() float64 { return chance }
			if got, want := e.supervisor.retryWait(), most/2+time.Duration(chance*float64(most/2)); got != want {
				t.Errorf("after %d failures and with %v: %v, want %v", n, chance, got, want)
			}
		}
	}
}
