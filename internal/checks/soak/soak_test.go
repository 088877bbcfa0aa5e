// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

const (
	atATime = 200 // conversations
	turns   = 3   // of a conversation

	// allowedGrowth is how much larger the heap may be after all conversations than
	// before them, in bytes. What each one left behind would add up.
	allowedGrowth = 4 << 20
)

// soak is everything that runs together.
type soak struct {
	fleet  []*server
	roster *ensemble.Roster
	book   *book
	deeds  deeds
	over   atomic.Bool // begin nothing more
}

// TestSoak: two hundred conversations at a time with eight servers that are
// killed, frozen and restarted all the while. In the end each invocation has
// its result, each result is true, and nothing is left.
func TestSoak(t *testing.T) {
	length := *soakFor
	if length <= 0 {
		t.Fatal("CONSORT_SOAK, or the flag -soak, is no length of time")
	}
	if end, ok := t.Deadline(); ok && time.Until(end) < length+2*time.Minute {
		t.Fatalf("a soak of %s needs a -timeout of two minutes more", length)
	}
	t.Logf("seed: -soak %s -soak.seed %d", length, *soakSeed)
	s := &soak{book: openBook(t)}
	before := takeAccount(t)
	s.fleet = newFleet(t)
	var ensembles []*ensemble.Ensemble
	for _, server := range s.fleet {
		ensembles = append(ensembles, server.ensemble)
	}
	var err error
	if s.roster, err = ensemble.NewRoster(ensembles...); err != nil {
		t.Fatal(err)
	}
	connect(t, s.roster)
	quiet := heap()
	s.run(t, length)
	late := heap()
	health := s.roster.Health()
	if err := s.roster.Close(within(t)); err != nil {
		t.Error(err)
	}
	for _, server := range s.fleet {
		server.stop()
	}
	after := before.settle(t)
	if late > quiet+allowedGrowth {
		t.Errorf("the heap grew from %d to %d KiB, though each conversation is over", quiet>>10, late>>10)
	}
	s.report(t, health)
	t.Logf("heap %d KiB before the conversations, %d KiB after them; goroutines %d and %d, files %d and %d, children %d and %d",
		quiet>>10, late>>10, before.goroutines, after.goroutines, before.files, after.files, before.children, after.children)
}

// connect connects everything. A busy machine may need more than one attempt.
func connect(t *testing.T, roster *ensemble.Roster) {
	t.Helper()
	ctx := within(t)
	err := roster.Connect(ctx)
	for err != nil && ctx.Err() == nil {
		err = roster.Connect(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run is the soak itself. When it returns, each conversation is over.
func (s *soak) run(t *testing.T, length time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), length+patience)
	defer cancel()
	var conversations, troubles sync.WaitGroup
	failures := make(chan error, atATime)
	for i := range atATime {
		conversations.Go(func() {
			random := rand.New(rand.NewPCG(*soakSeed, uint64(i)))
			for generation := 0; !s.over.Load(); generation++ {
				if err := s.converse(ctx, fmt.Sprintf("%d-%d", i, generation), random); err != nil {
					failures <- fmt.Errorf("conversation %d-%d: %w", i, generation, err)
					return
				}
			}
		})
	}
	harassed, calm := context.WithCancel(ctx)
	defer calm()
	for i, server := range s.fleet {
		c := chaos{server, &s.deeds, rand.New(rand.NewPCG(*soakSeed, uint64(atATime+i)))}
		troubles.Go(func() { c.run(harassed) })
	}
	pause(ctx, length)
	calm()
	troubles.Wait()
	s.over.Store(true)
	conversations.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

// converse holds one conversation to its end and enters it in the book.
func (s *soak) converse(ctx context.Context, name string, random *rand.Rand) error {
	var servers []string
	for _, server := range s.fleet {
		servers = append(servers, server.name)
	}
	model := &restless{random: random, think: 2 * time.Second, wishes: anything(name, servers), over: &s.over}
	talk := converse.New(model, s.roster, nil)
	for range turns {
		if s.over.Load() {
			break
		}
		if err := turn(ctx, talk, random); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("it hangs: %w", err)
	}
	history := talk.History()
	closing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return errors.Join(talk.Close(closing), s.book.add(history))
}

// turn makes one turn, which the caller sometimes cancels, and sometimes leaves.
func turn(ctx context.Context, talk *converse.Conversation, random *rand.Rand) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leaveAfter := -1
	switch n := random.IntN(20); n {
	case 0:
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(4*time.Second))), func() { cancel(errEnough) })
		defer timer.Stop()
	case 1:
		leaveAfter = random.IntN(20)
	}
	events := 0
	for _, err := range talk.Send(ctx, canister.Text("Do something.")) {
		if err != nil && context.Cause(ctx) != errEnough {
			return err
		}
		if events++; events == leaveAfter {
			break
		}
	}
	return nil
}

var errEnough = errors.New("the caller has had enough")

// report checks the book against the ledgers, and prints the figures.
func (s *soak) report(t *testing.T, health ensemble.Health) {
	t.Helper()
	outcomes, calls, effects, unknown := map[string]int{}, 0, 0, 0
	records := s.book.read(t)
	for _, server := range s.fleet {
		happened, untold := audit(t, server, records[server.name])
		effects, unknown = effects+happened, unknown+untold
		for _, r := range records[server.name] {
			calls++
			if r.Code == "" {
				r.Code = "OK"
			}
			outcomes[r.Code]++
		}
	}
	var lines strings.Builder
	for _, code := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(&lines, " %s %d", code, outcomes[code])
	}
	d, restarts, repeats, dropped := &s.deeds, 0, 0, 0
	for _, e := range health.Ensembles {
		restarts += e.Restarts
		repeats += e.Repeats
		dropped += e.Late
	}
	for _, err := range d.errs {
		t.Error(err)
	}
	t.Logf("%d conversations, %d invocations:%s; %d effects, %d of them of calls whose outcome was unknown",
		s.book.conversations, calls, &lines, effects, unknown)
	t.Logf("%d kills, %d freezes, %d restarts, %d times parked", d.kills, d.freezes, d.restarts, d.parked)
	t.Logf("%d recoveries, p50 %s, p99 %s, longest %s; %d lost connections were replaced, %d calls repeated, %d late answers dropped",
		len(d.recoveries), d.percentile(50).Round(time.Millisecond), d.percentile(99).Round(time.Millisecond),
		d.percentile(100).Round(time.Millisecond), restarts, repeats, dropped)
	if calls == 0 || outcomes["OK"] == 0 || effects == 0 || d.kills == 0 || restarts == 0 || len(d.recoveries) == 0 {
		t.Error("the soak was none: too little happened")
	}
}
