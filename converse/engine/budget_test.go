// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// endsOf returns the ends that a watch yields within a time.
func endsOf(t *testing.T, e engine.Engine, within time.Duration) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var ends []string
	for event := range e.Watch(ctx, "talk", 0) {
		if ended, ok := event.(engine.Ended); ok {
			ends = append(ends, fmt.Sprintf("%s: %s%s%s", ended.Turn, ended.Reason, ended.Error, ended.Superseded))
		}
	}
	return ends
}

// Watchers that come after a budget has ended a turn see its end, too, until the turn goes on. Watchers that are
// there see each end once, also if the stream loses it, and none of a turn that is over already.
func TestWatchSeesTheEndByABudget(t *testing.T) {
	for _, stream := range []engine.Stream{nil, deaf{}} {
		synctest.Test(t, func(t *testing.T) {
			store, suffices := history.NewMemory(), new(atomic.Bool)
			m := model(func(ctx context.Context, list []canister.Canister) (string, error) {
				if !suffices.Load() {
					return "", &budget.ReachedError{}
				}
				return echo(ctx, list)
			})
			local := start(t, store, opens(m, store, converse.Options{}), &engine.Options{Stream: stream})
			all := make(chan []string, 1)
			go func() { all <- endsOf(t, local, time.Minute) }()
			synctest.Wait()
			send(t, local, "talk", "m1", "hello")
			synctest.Wait()
			if ends := endsOf(t, local, 5*time.Second); !slices.Equal(ends, []string{"m1: budget"}) {
				t.Errorf("a later watcher sees the ends %q", ends)
			}
			if ended, is := local.Failed("talk", 1); !is || ended.Turn != "m1" || ended.Reason != converse.ReasonBudget || local.Active("talk") {
				t.Errorf("the engine knows of %+v, %v", ended, is)
			}
			send(t, local, "talk", "m1", "hello") // again
			time.Sleep(5 * time.Second)
			suffices.Store(true)
			send(t, local, "talk", "m2", "and now?")
			if ends := endsOf(t, local, 5*time.Second); !slices.Equal(ends, []string{"m1: m2", "m2: answered"}) {
				t.Errorf("after the next message a later watcher sees the ends %q", ends)
			}
			if ended, is := local.Failed("talk", 0); is {
				t.Errorf("after the next message the engine knows of %+v", ended)
			}
			if ends := <-all; !slices.Equal(ends, []string{"m1: budget", "m1: budget", "m2: answered"}) {
				t.Errorf("the watcher sees the ends %q", ends)
			}
		})
	}
}

// A turn that a budget has ended can go on and end in another way without a new canister, which a watcher sees, too.
func TestWatchSeesAnotherEndAfterABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, suffices := history.NewMemory(), false
		m := model(func(ctx context.Context, _ []canister.Canister) (string, error) {
			if suffices {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "", &budget.ReachedError{}
		})
		local := start(t, store, opens(m, store, converse.Options{Limits: converse.Limits{Time: 2 * time.Second}}), nil)
		all := make(chan []string, 1)
		go func() { all <- endsOf(t, local, time.Minute) }()
		synctest.Wait() // otherwise the search at the start tries the turn, too
		send(t, local, "talk", "m1", "hello")
		synctest.Wait()
		suffices = true
		send(t, local, "talk", "m1", "hello") // again
		time.Sleep(20 * time.Second)
		send(t, local, "talk", "m2", "hello")
		if ends := <-all; !slices.Equal(ends, []string{"m1: budget", "m1: time_limit", "m2: time_limit"}) {
			t.Errorf("the watcher sees the ends %q", ends)
		}
	})
}

// Another process continues a turn that a budget has ended here, or that has failed: it is not over then.
func TestAnotherProcessContinuesAGivenUpTurn(t *testing.T) {
	for _, cause := range []error{&budget.ReachedError{}, &converse.ModelError{Status: 400, Message: "no"}} {
		synctest.Test(t, func(t *testing.T) {
			store := history.NewMemory()
			roster := tools(t, func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
			refuses := model(func(context.Context, []canister.Canister) (string, error) { return "", cause })
			options := &engine.Options{Others: time.Hour, Poll: time.Second}
			here, there := start(t, store, opens(refuses, store, converse.Options{}), options), start(t, store, withTool(roster, store), options)
			synctest.Wait() // otherwise the search at the start tries the turn, too
			send(t, here, "talk", "m1", "call local__tool")
			synctest.Wait()
			if _, is := here.Failed("talk", 1); !is || len(endsOf(t, here, 5*time.Second)) != 1 {
				t.Errorf("the end by %v is not known", cause)
			}
			send(t, there, "talk", "m1", "call local__tool")
			time.Sleep(5 * time.Second)
			if ended, is := here.Failed("talk", len(read(t, store, "talk"))); is {
				t.Errorf("while another process works, the engine knows of %+v", ended)
			}
			if ends := endsOf(t, here, 5*time.Second); len(ends) > 0 {
				t.Errorf("while another process works, a watcher sees the ends %q", ends)
			}
		})
	}
}

// deaf is a stream that loses everything.
type deaf struct{}

func (deaf) Publish(context.Context, string, engine.Delta) error { return nil }

func (deaf) Subscribe(context.Context, string) (<-chan engine.Delta, error) { return nil, nil }
