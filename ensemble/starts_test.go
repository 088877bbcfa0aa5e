// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// spawned is a source whose process takes a second of the clock to start.
type spawned struct {
	ensemble.Source
	takes  time.Duration
	deaf   bool // it ignores its context
	around func() (end func())
}

func (s *spawned) Spawns() bool { return true }

func (s *spawned) Open(ctx context.Context) (ensemble.Connection, error) {
	defer s.around()()
	if s.deaf {
		ctx = context.Background()
	}
	select {
	case <-time.After(s.takes):
		return s.Source.Open(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// starter notes what starts, and how much at a time.
type starter struct {
	mu        sync.Mutex
	order     []string
	now, most int
}

// ensemble makes one that takes a while to start.
func (s *starter) ensemble(name string, takes time.Duration, options ensemble.Options) *ensemble.Ensemble {
	tool, err := invoker.New("do", "", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	if err != nil {
		panic(err)
	}
	around := func() func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order = append(s.order, name)
		s.now++
		s.most = max(s.most, s.now)
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.now--
		}
	}
	return ensemble.New(name, &spawned{Source: ensemble.LocalSource(tool), takes: takes, around: around, deaf: name == "deaf"}, &options)
}

func rosterOf(t *testing.T, all ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(all...)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// Processes start a few at a time, and the time-out of each begins with its own
// start.
func TestStartsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starter
		starts := &ensemble.Starts{Limit: 3}
		var all []*ensemble.Ensemble
		for i := range 10 {
			all = append(all, s.ensemble(fmt.Sprint(i), time.Second, ensemble.Options{Starts: starts, ConnectTimeout: 1500 * time.Millisecond}))
		}
		roster := rosterOf(t, all...)
		began := time.Now()
		catalog, err := roster.Catalog(t.Context())
		if err != nil || len(catalog.Away()) != 0 || len(catalog.Tools()) != 10 {
			t.Errorf("after %s %d tools are on offer, and away are %v (%v)", time.Since(began), len(catalog.Tools()), catalog.Away(), err)
		}
		if took := time.Since(began); took != 4*time.Second || s.most != 3 {
			t.Errorf("it took %s and %d started at a time, want 4s and 3", took, s.most)
		}
		if err := roster.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Servers that a call waits for start first, then required ones; the oldest is preferred
// now and then, so that none waits forever.
func TestStartsInOrderOfNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starter
		starts := &ensemble.Starts{Limit: 1}
		var all []*ensemble.Ensemble
		for _, name := range []string{"a", "b", "c", "d", "e", "needed", "called"} {
			all = append(all, s.ensemble(name, time.Second, ensemble.Options{Starts: starts, Required: name == "needed"}))
		}
		called := all[6]
		tools, err := called.Tools(t.Context()) // known from before
		if err != nil || called.Disconnect(t.Context()) != nil {
			t.Fatal(err)
		}
		s.order = nil
		roster := rosterOf(t, all...)
		var waiting sync.WaitGroup
		for _, e := range all[:5] { // one after the other, so that their order is known
			waiting.Go(func() { _ = e.Connect(t.Context()) })
			synctest.Wait()
		}
		waiting.Go(func() { _ = all[5].Connect(t.Context()) })
		synctest.Wait()
		waiting.Go(func() {
			if _, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: []byte("{}")}); err != nil {
				t.Errorf("the call: %v", err)
			}
		})
		synctest.Wait()
		if states := statesOf(roster); states != "connecting queued queued queued queued queued queued" {
			t.Errorf("the states are %s", states)
		}
		waiting.Wait()
		// "called" was the first start of all, and "a" the second.
		if want := []string{"a", "called", "b", "needed", "c", "d", "e"}; !slices.Equal(s.order, want) {
			t.Errorf("they started in the order %v, want %v", s.order, want)
		}
		if err := roster.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func statesOf(roster *ensemble.Roster) string {
	var states []string
	for _, e := range roster.Health().Ensembles {
		states = append(states, string(e.State))
	}
	return strings.Join(states, " ")
}

// A start that is no longer wanted leaves the queue, one that has ended frees its slot,
// and so does one whose source ignores its deadline.
func TestStartsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starter
		starts := &ensemble.Starts{Limit: 1}
		options := ensemble.Options{Starts: starts, ConnectTimeout: 2 * time.Second}
		deaf := s.ensemble("deaf", 10*time.Second, options)
		closed := s.ensemble("closed", time.Second, options)
		slow := s.ensemble("slow", time.Minute, options)
		last := s.ensemble("last", time.Second, options)
		roster := rosterOf(t, deaf, closed, slow, last)
		began := time.Now()
		errs := make([]error, 4)
		var waiting sync.WaitGroup
		for i, e := range roster.Ensembles() {
			waiting.Go(func() { errs[i] = e.Connect(t.Context()) })
			synctest.Wait()
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		if err := last.Connect(left); !errors.Is(err, context.Canceled) {
			t.Errorf("Connect with a context that has ended: %v", err)
		}
		if err := closed.Close(t.Context()); err != nil {
			t.Errorf("Close of a queued one: %v", err)
		}
		waiting.Wait()
		for i, want := range []error{context.DeadlineExceeded, ensemble.ErrClosed, context.DeadlineExceeded, nil} {
			if !errors.Is(errs[i], want) {
				t.Errorf("ensemble %d: %v, want %v", i, errs[i], want)
			}
		}
		if took := time.Since(began); took > 6*time.Second { // 2 and 2 and 1, and the delay of a watchdog
			t.Errorf("the last was connected after %s", took)
		}
		if slices.Contains(s.order, "closed") {
			t.Error("what was closed in the queue was started")
		}
		time.Sleep(10 * time.Second) // for the deaf one
		if err := roster.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Waiting for a connection takes nothing of the time that a request has.
func TestConnectingIsNoTimeOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starter
		e := s.ensemble("slow", 20*time.Second, ensemble.Options{ConnectTimeout: 30 * time.Second, CallTimeout: time.Second, CallLimit: time.Second})
		if _, err := e.ReadResource(t.Context(), "x:y"); err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
			t.Errorf("reading a resource: %v, want NOT_FOUND of an ensemble without any", err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
