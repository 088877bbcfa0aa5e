// SPDX-License-Identifier: Apache-2.0

package foreign_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
)

// last is the number that ends the numbers.
const last = 99

// numbers streams what open yields; the function goes on at once after positive numbers.
func numbers(t *testing.T, open func(ctx context.Context, yield func(int, error) bool)) iter.Seq2[int, error] {
	return foreign.Stream(t.Context(), new(foreign.Background), "the function",
		func(_ context.Context, err *foreign.LeftError) { t.Error(err) },
		func(n int) (_ int, goesOn, ended bool) { return n, n > 0 && n != last, n == last },
		func(ctx context.Context) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) { open(ctx, yield) }
		})
}

// A function is at most eight events and the one in its hands ahead, and waits after others.
func TestStreamGoesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yielded, taken := 0, []int{}
		for n, err := range numbers(t, func(_ context.Context, yield func(int, error) bool) {
			for n := 1; n <= 20 && yield(n, nil); n++ {
				yielded = n
			}
			for n := 0; n > -3 && yield(n, nil); n-- {
				yielded = n
			}
		}) {
			synctest.Wait()
			taken = append(taken, n)
			if ahead := yielded - n; err != nil || n > 0 && n < 10 && ahead != 8 || n <= 0 && yielded != min(n+1, 0) && n < 0 {
				t.Errorf("%d (%v) is taken when %d was yielded", n, err, yielded)
			}
		}
		if want := 23; len(taken) != want || !slices.IsSortedFunc(taken[20:], func(a, b int) int { return b - a }) {
			t.Errorf("taken: %v", taken)
		}
	})
}

// Events before a panic or the end of the function are not lost, and nothing follows the end.
func TestStreamEndsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		var failed error
		for n, err := range numbers(t, func(_ context.Context, yield func(int, error) bool) {
			for n := range 5 {
				yield(n+1, nil)
			}
			panic("now")
		}) {
			synctest.Wait() // the function has ended
			if failed = err; err == nil {
				taken = append(taken, n)
			}
		}
		if _, ok := errors.AsType[*contain.Panic](failed); !ok || !slices.Equal(taken, []int{1, 2, 3, 4, 5}) {
			t.Errorf("taken: %v, then %v", taken, failed)
		}
	})
}

// A function is told at once that its last event was the last, and nothing that follows is
// handed over.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		ended := false
		for n, err := range numbers(t, func(_ context.Context, yield func(int, error) bool) {
			ended = yield(1, nil) && !yield(last, nil) && !yield(2, nil) && !yield(0, nil)
		}) {
			synctest.Wait()
			if taken = append(taken, n); err != nil || n == last && !ended {
				t.Errorf("%d (%v) is taken, and the function has ended: %v", n, err, ended)
			}
		}
		if !slices.Equal(taken, []int{1, last}) {
			t.Errorf("taken: %v", taken)
		}
	})
}

// A function that waits to hand over an event ends when the caller leaves.
func TestStreamLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted := 0
		for range numbers(t, func(_ context.Context, yield func(int, error) bool) {
			for wanted = 1; yield(wanted, nil); wanted++ {
			}
		}) {
			synctest.Wait()
			break
		}
		if wanted < 2 || wanted > 30 {
			t.Errorf("the function yielded %d", wanted)
		}
	})
}
