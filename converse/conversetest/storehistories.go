// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// HistoriesVariable is the environment variable that says how many histories the
// cases Histories of [TestStore] write; the default is 60, and 20 with -short.
const HistoriesVariable = "CONSORT_HISTORIES"

// eachHistory calls check with conversations that a loop has held.
func (s *storeSubject) eachHistory(check func(name string, h *held, rng *rand.Rand)) {
	runs := 60
	if shortened() {
		runs = 20
	}
	if given := os.Getenv(HistoriesVariable); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil {
			s.Fatalf("%s: %v", HistoriesVariable, err)
		}
		runs = n
	}
	for seed := range uint64(runs) {
		h, err := hold(seed)
		if err != nil {
			s.Fatal(err)
		}
		if len(h.appends) == 0 { // it died too soon
			continue
		}
		check(fmt.Sprintf("talk %d", seed), h, rand.New(rand.NewPCG(seed, 7)))
		if s.Failed() {
			var lines bytes.Buffer
			_ = canister.Encode(&lines, h.list(len(h.appends))...)
			s.Fatalf("the conversation of seed %d:\n%s", seed, clip(lines.String()))
		}
	}
}

// histories writes each history as a loop does whose appends are cut short now
// and then, and which does them again.
func histories(s *storeSubject) {
	opened := 0
	s.eachHistory(func(name string, h *held, rng *rand.Rand) {
		for i, canisters := range h.appends {
			length := len(h.list(i))
			if rng.IntN(8) == 0 {
				s.cutShort(name, length, canisters, rng)
			}
			s.append(name, length, canisters...)
			if opened < 4 && rng.IntN(40) == 0 { // those before stay open
				s.reopen()
				opened++
			}
		}
		s.sameNext(name, h, len(h.appends))
	})
}

// cutShort begins an append whose context may end at any time.
func (s *storeSubject) cutShort(name string, length int, canisters []canister.Canister, rng *rand.Rand) {
	ctx, cancel := context.WithCancel(s.context())
	gone := make(chan struct{})
	spin := rng.IntN(2000)
	go func() {
		defer close(gone)
		for range spin {
			_ = ctx.Err()
		}
		cancel()
	}()
	err := s.store.Append(ctx, name, length, canisters...)
	if cancel(); err != nil && !errors.Is(err, context.Canceled) {
		s.Errorf("an append that was cut short: %v", err)
	}
	<-gone
}

// sameNext checks that a conversation is what the first n appends have made of
// it, and that the same comes next.
func (s *storeSubject) sameNext(name string, h *held, n int) {
	s.Helper()
	want := h.list(n)
	s.holds(name, want...)
	got := s.read(name, 0)
	if is, was := converse.Next(got, h.policy, h.now), converse.Next(want, h.policy, h.now); !reflect.DeepEqual(is, was) {
		s.Errorf("what comes next in %s is %+v, and was %+v", name, is, was)
	}
	if is, was := converse.Waiting(got, h.now), converse.Waiting(want, h.now); !reflect.DeepEqual(is, was) {
		s.Errorf("%s waits for %+v, and waited for %+v", name, is, was)
	}
}

// historiesTorn lets each history end in an append that was torn, and goes on.
func historiesTorn(s *storeSubject) {
	if s.Torn == nil {
		s.Skip("nobody can tear an append of this store")
	}
	whole := s.store
	s.eachHistory(func(name string, h *held, rng *rand.Rand) {
		last := rng.IntN(len(h.appends))
		s.store = whole
		for i, canisters := range h.appends[:last] {
			s.append(name, len(h.list(i)), canisters...)
		}
		store, err := s.Torn(func() { s.append(name, len(h.list(last)), h.appends[last]...) }, rng.Float64())
		if err != nil {
			s.Fatalf("Torn: %v", err)
		}
		s.store = store
		n := last
		if len(s.read(name, 0)) != len(h.list(last)) {
			n++
		}
		s.sameNext(name, h, n)
		s.append(name, len(h.list(last)), h.appends[last]...)
		s.sameNext(name, h, last+1)
		if err := store.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
		if err := whole.Delete(s.context(), name, history.AnyLength); err != nil && !errors.Is(err, history.ErrNotFound) {
			s.Errorf("Delete: %v", err)
		}
	})
	s.store = whole
}
