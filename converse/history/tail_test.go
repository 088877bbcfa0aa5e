// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// watched is a store that records its reads, and runs a function before each.
type watched struct {
	history.Store
	before func(after int)
	reads  []int // indexes
	yields int
}

func (w *watched) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		w.reads = append(w.reads, after)
		if w.before != nil {
			w.before(after)
		}
		for c, err := range w.Store.Read(ctx, id, after) {
			w.yields++
			if !yield(c, err) {
				return
			}
		}
	}
}

func users(from, to int) (canisters []canister.Canister) {
	for i := from; i < to; i++ {
		canisters = append(canisters, canister.User{Head: canister.Head{ID: fmt.Sprint(i)}})
	}
	return canisters
}

func numbered(t *testing.T, n int) *watched {
	t.Helper()
	store := history.NewMemory()
	if n > 0 {
		if err := store.Append(t.Context(), "talk", 0, users(0, n)...); err != nil {
			t.Fatal(err)
		}
	}
	return &watched{Store: store}
}

// expect expects the canisters from an index to the end.
func expect(t *testing.T, start int, canisters []canister.Canister, from, to int) {
	t.Helper()
	if start != from || len(canisters) != to-from {
		t.Fatalf("%d canisters from %d on, want %d from %d on", len(canisters), start, to-from, from)
	}
	for i, c := range canisters {
		if want := fmt.Sprint(from + i); c.Header().ID != want {
			t.Fatalf("at %d stands %s", from+i, c.Header().ID)
		}
	}
}

// Tail reads no more than is wanted, and twice only the canister at which two reads meet.
func TestTail(t *testing.T) {
	for _, test := range []struct{ length, wanted, from, yields int }{
		{0, 1, 0, 0}, {1, 1, 0, 1}, {63, 5, 0, 63}, {64, 5, 0, 64}, {65, 5, 1, 64}, {1000, 64, 936, 64},
		{1000, 65, 680, 321}, {1000, 321, 0, 1002}, {10_000, 320, 9680, 321}, {10_000, 20_000, 0, 10_004},
	} {
		w := numbered(t, test.length)
		start, canisters, err := history.Tail(t.Context(), w, "talk", func(start int, canisters []canister.Canister) bool {
			expect(t, start, canisters, start, test.length)
			return len(canisters) >= test.wanted
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, start, canisters, test.from, test.length)
		if w.yields != test.yields {
			t.Errorf("%+v: %d were read: %v", test, w.yields, w.reads)
		}
	}
}

// plain is a log without other methods.
type plain struct{ history.Log }

// Of a log that cannot tell its length all is read, once.
func TestTailOfALogOnly(t *testing.T) {
	w := numbered(t, 300)
	start, canisters, err := history.Tail(t.Context(), plain{w}, "talk", func(int, []canister.Canister) bool { return true })
	if err != nil || len(w.reads) != 1 {
		t.Fatal(err, w.reads)
	}
	expect(t, start, canisters, 0, 300)
}

// damaged is a store that can read canisters but not their metadata.
type damaged struct{ history.Store }

func (damaged) Info(_ context.Context, id string) (history.Info, error) {
	return history.Info{}, fmt.Errorf("info: %w", &history.CorruptError{Conversation: id, Err: errors.New("no JSON")})
}

// A conversation with damaged metadata but intact canisters is still read.
func TestTailOfADamagedInfo(t *testing.T) {
	w := numbered(t, 300)
	start, canisters, err := history.Tail(t.Context(), damaged{w}, "talk", func(int, []canister.Canister) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	expect(t, start, canisters, 0, 300)
}

// What is appended while it is looked for is there, and of a conversation that is
// begun anew, and does not reach as far, there is the new one alone.
func TestTailOfWhatChanges(t *testing.T) {
	none := func(int, []canister.Canister) bool { return false }
	grows := numbered(t, 200)
	grows.before = func(after int) {
		if after == 136 {
			if err := grows.Append(t.Context(), "talk", 200, users(200, 210)...); err != nil {
				t.Error(err)
			}
		}
	}
	start, canisters, err := history.Tail(t.Context(), grows, "talk", none)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, start, canisters, 0, 210)

	shorter := numbered(t, 1000)
	shorter.before = func(after int) {
		if len(shorter.reads) == 2 {
			if err := errors.Join(shorter.Delete(t.Context(), "talk", -1), shorter.Append(t.Context(), "talk", 0, users(0, 3)...)); err != nil {
				t.Error(err)
			}
		}
	}
	twice := func(int, []canister.Canister) bool { return len(shorter.reads) > 1 }
	if start, canisters, err = history.Tail(t.Context(), shorter, "talk", twice); err != nil {
		t.Fatal(err)
	}
	expect(t, start, canisters, 0, 3)

	longer := numbered(t, 1000)
	longer.before = func(int) {
		if len(longer.reads) == 2 {
			anew := users(5000, 7000)
			if err := errors.Join(longer.Delete(t.Context(), "talk", -1), longer.Append(t.Context(), "talk", 0, anew...)); err != nil {
				t.Error(err)
			}
		}
	}
	start, canisters, err = history.Tail(t.Context(), longer, "talk", func(int, []canister.Canister) bool { return len(longer.reads) > 1 })
	if err != nil || start != 0 || len(canisters) != 2000 || canisters[0].Header().ID != "5000" {
		t.Errorf("of a longer conversation that was begun anew, there are %d canisters from %d on: %v", len(canisters), start, err)
	}
}

// Errors of the log are the error of Tail.
func TestTailFails(t *testing.T) {
	w := numbered(t, 200)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := history.Tail(ctx, w, "talk", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	w.before = func(int) { cancel() }
	if _, _, err := history.Tail(ctx, w, "talk", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
