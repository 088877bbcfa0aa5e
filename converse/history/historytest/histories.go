// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/testing/suite"
)

// HistoriesVariable is the environment variable that sets how many histories the
// Histories cases of [TestStore] write; the default is 60, and 20 with -short.
const HistoriesVariable = "CONSORT_HISTORIES"

// most is how many keepers write histories concurrently: stores mostly wait for disks
// and servers.
const most = 8

// eachHistory calls check with generated conversations. Each keeper checks its share of
// them sequentially, with its own subject, which begin initializes.
func (s *storeSubject) eachHistory(begin func(keeper *storeSubject), check func(keeper *storeSubject, name string, h *held, rng *rand.Rand)) {
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
	keepers := most
	if !s.Shared { // reopening the store closes it for the other keepers
		keepers = 1
	}
	s.each(keepers, func(i int) {
		s.Run(fmt.Sprint("keeper ", i), func(t *testing.T) {
			keeper := *s
			keeper.T = t
			begin(&keeper)
			for seed := i; seed < runs && !s.Failed(); seed += keepers {
				keeper.history(uint64(seed), check)
			}
		})
	})
}

// history calls check with the conversation of a seed.
func (s *storeSubject) history(seed uint64, check func(keeper *storeSubject, name string, h *held, rng *rand.Rand)) {
	h, err := hold(seed)
	if err != nil {
		s.Fatal(err)
	}
	if len(h.appends) == 0 { // it died too soon
		return
	}
	defer func() {
		if s.Failed() {
			var lines bytes.Buffer
			_ = canister.Encode(&lines, h.list(len(h.appends))...)
			s.Logf("the conversation of seed %d:\n%s", seed, suite.Quote(lines.String()))
		}
	}()
	check(s, fmt.Sprintf("talk %d", seed), h, rand.New(rand.NewPCG(seed, 7)))
}

// histories writes each history like a loop whose appends are sometimes interrupted and
// then repeated. All are in one store, which is sometimes opened again.
func histories(s *storeSubject) {
	var opened atomic.Int32
	s.eachHistory(func(*storeSubject) {}, func(keeper *storeSubject, name string, h *held, rng *rand.Rand) {
		for i, canisters := range h.appends {
			length := len(h.list(i))
			if rng.IntN(8) == 0 {
				keeper.cutShort(name, length, canisters, rng)
			}
			keeper.append(name, length, canisters...)
			if rng.IntN(40) == 0 && opened.Add(1) <= 4 { // all stay open while the case runs
				again := *s
				again.store = keeper.store
				again.reopen()
				keeper.store = again.store
			}
		}
		keeper.sameNext(name, h, len(h.appends))
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
		s.Errorf("an interrupted append: %v", err)
	}
	<-gone
}

// sameNext checks that a conversation has the canisters of the first n appends, and
// that the next step is the same.
func (s *storeSubject) sameNext(name string, h *held, n int) {
	s.Helper()
	want := h.list(n)
	s.holds(name, want...)
	got := s.read(name, 0)
	if is, was := converse.Next(got, h.policy, h.now), converse.Next(want, h.policy, h.now); !reflect.DeepEqual(is, was) {
		s.Errorf("the next step of %s is %+v, and was %+v", name, is, was)
	}
	if is, was := waits.Open("", got, h.now), waits.Open("", want, h.now); !reflect.DeepEqual(is, was) {
		s.Errorf("%s waits for %+v, and waited for %+v", name, is, was)
	}
}

// historiesTorn ends each history in a torn append, and continues it. Each keeper has
// its own store, because tearing an append affects the whole store.
func historiesTorn(s *storeSubject) {
	if s.Torn == nil {
		s.Skip("the harness cannot interrupt an append of this store")
	}
	own := func(keeper *storeSubject) {
		keeper.Harness = s.newHarness(keeper.T)
		keeper.Patience = s.Patience
		keeper.store = keeper.open()
	}
	s.eachHistory(own, func(keeper *storeSubject, name string, h *held, rng *rand.Rand) {
		last := rng.IntN(len(h.appends))
		for i, canisters := range h.appends[:last] {
			keeper.append(name, len(h.list(i)), canisters...)
		}
		keeper.torn(name, h, last, rng.Float64())
		if err := keeper.store.Delete(keeper.context(), name, history.AnyLength); err != nil {
			keeper.Errorf("Delete: %v", err)
		}
	})
}

// torn tears the append with the index last so that a fraction n of it is written, and
// repeats it.
func (s *storeSubject) torn(name string, h *held, last int, n float64) {
	length, canisters := len(h.list(last)), h.appends[last]
	store, err := s.Torn(func() { s.append(name, length, canisters...) }, n)
	if err != nil {
		s.Fatalf("Torn: %v", err)
	}
	whole := s.store
	s.store = store
	defer func() { s.store = whole }()
	is := last
	if len(s.read(name, 0)) != length {
		is++
	}
	s.sameNext(name, h, is)
	s.append(name, length, canisters...)
	s.sameNext(name, h, last+1)
	if err := store.Close(); err != nil {
		s.Errorf("Close: %v", err)
	}
}
