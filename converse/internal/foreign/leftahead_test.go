// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Once the caller has left, the function is told so by each event, also while there is room for
// more.
func TestStreamIsToldThatTheCallerLeft(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			wanted := 0
			for range numbers(t, func(_ context.Context, yield func(int, error) bool) {
				yield(1, nil)
				for range 5 {
					time.Sleep(time.Second) // the caller has left
					if yield(2, nil) {
						wanted++
					}
				}
			}) {
				synctest.Wait()
				break
			}
			if wanted != 0 {
				t.Fatalf("%d events were wanted after the caller had left", wanted)
			}
		})
	}
}
