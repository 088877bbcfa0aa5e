// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// away is a store that cannot be listed, or only in part, until a time.
type away struct {
	*history.Memory
	until time.Time
	part  bool
}

func (a away) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		isAway := time.Now().Before(a.until)
		for info, err := range a.Memory.List(ctx, f) {
			if (!isAway || a.part) && !yield(info, err) {
				return
			}
		}
		if isAway {
			yield(history.Info{}, errors.New("the connection was lost"))
		}
	}
}

// Unfinished work is found however long the store is away, and what fails is not tried more
// often because the search is repeated.
func TestSearchUntilTheStoreIsBack(t *testing.T) {
	for _, part := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := away{history.NewMemory(), time.Now().Add(time.Hour), part}
			for _, id := range []string{"talk", "fails"} {
				if err := engine.Post(t.Context(), store, nil, id, said("m1", id), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			var failed atomic.Int64
			local := start(t, store, opens(model(func(ctx context.Context, list []canister.Canister) (string, error) {
				if text, err := echo(ctx, list); text != "fails" {
					return text, err
				}
				failed.Add(1)
				return "", &converse.ModelError{Message: "no such model", Status: 404}
			}), store, converse.Options{}), nil)
			time.Sleep(2 * time.Hour)
			if info, err := store.Info(t.Context(), "talk"); err != nil || info.Last != canister.KindAssistant {
				t.Errorf("the last canister is %s, %v; want an answer", info.Last, err)
			}
			if n := failed.Load(); n != 1 {
				t.Errorf("what fails for good was tried %d times", n)
			}
			if err := local.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A fork in the middle of a turn is not continued before a message asks for it, also not by another engine that finds
// it much later.
func TestForksAreNotResumed(t *testing.T) {
	for _, others := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store, asked := history.NewMemory(), atomic.Int64{}
			open := opens(model(func(ctx context.Context, list []canister.Canister) (string, error) {
				asked.Add(1)
				return echo(ctx, list)
			}), store, converse.Options{})
			first := start(t, store, open, nil)
			send(t, first, "talk", "m1", "hello")
			waitFor(t, first, "talk", "m1")
			if err := store.Fork(t.Context(), "talk", 1, "fork"); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			local := start(t, store, open, &engine.Options{Others: others})
			time.Sleep(time.Hour)
			if n := asked.Load(); n != 1 {
				t.Errorf("the model was asked %d times, want once", n)
			}
			send(t, local, "fork", "m1", "hello")
			if ended := waitFor(t, local, "fork", "m1"); ended.Reason != converse.ReasonAnswered || asked.Load() != 2 {
				t.Errorf("the fork ends with %+v after %d requests", ended, asked.Load())
			}
		})
	}
}

// unread is a store that cannot be listed until a time, and of which a conversation cannot be read
// the first times after that.
type unread struct {
	*history.Memory
	away  time.Time
	times int64
	id    string
	whole *atomic.Int64 // counts the lists of all that is there
}

func (u unread) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		if time.Now().Before(u.away) {
			yield(history.Info{}, errors.New("the disk is not mounted"))
			return
		}
		if f.Since.IsZero() {
			u.whole.Add(1)
		}
		isUnread := u.whole.Load() <= u.times
		for info, err := range u.Memory.List(ctx, f) {
			if (info.ID != u.id || !isUnread) && !yield(info, err) {
				return
			}
		}
		if isUnread {
			yield(history.Info{ID: u.id}, errors.New("permission denied"))
		}
	}
}

// A conversation that cannot be read is tried again a few times, however long the store was away
// before, and does not make the engine search all of the store for as long as it lives.
func TestSearchWithAnUnreadConversation(t *testing.T) {
	for _, others := range []time.Duration{0, 30 * time.Second} {
		for _, try := range []struct {
			unread, whole int64
			want          canister.Kind
		}{{2, 3, canister.KindAssistant}, {1 << 60, 4, canister.KindUser}} {
			synctest.Test(t, func(t *testing.T) {
				store := unread{history.NewMemory(), time.Now().Add(10 * time.Minute), try.unread, "talk", new(atomic.Int64)}
				if err := engine.Post(t.Context(), store, nil, "talk", said("m1", "hello"), time.Now()); err != nil {
					t.Fatal(err)
				}
				local := start(t, store, opens(model(echo), store, converse.Options{}), &engine.Options{Others: others, Retries: 3})
				time.Sleep(10 * time.Hour)
				if n := store.whole.Load(); n != try.whole {
					t.Errorf("others %v: the whole store was searched %d times, want %d", others, n, try.whole)
				}
				if info, err := store.Info(t.Context(), "talk"); err != nil || info.Last != try.want {
					t.Errorf("others %v: the last canister is %s, %v; want %s", others, info.Last, err, try.want)
				}
				if err := local.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
