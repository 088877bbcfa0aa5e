// SPDX-License-Identifier: Apache-2.0

package debounce

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed atomic.Int64
		d := New(func() { passed.Add(1) })
		note := func(times int, want int64, when string) {
			t.Helper()
			for range times {
				d.Note()
			}
			if synctest.Wait(); passed.Load() != want {
				t.Fatalf("%s: %d were passed on, want %d", when, passed.Load(), want)
			}
		}
		after := func(d time.Duration) { // the clock of the bubble
			<-time.After(d)
			synctest.Wait()
		}
		note(1, 1, "the first change")
		note(5, 1, "five more at once")
		after(mergeWithin)
		note(0, 2, "the five, later")
		after(mergeWithin)
		note(0, 2, "nothing new")
		note(2, 3, "two more, much later")
		d.Stop()
		after(2 * mergeWithin)
		note(1, 3, "after Stop")
	})
}
