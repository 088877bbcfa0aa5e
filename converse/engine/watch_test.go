// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// The watchers of one process see that a limit has ended a turn in another, although the log does
// not show it.
func TestWatchSeesALimitOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		hangs := model(func(ctx context.Context, _ []canister.Canister) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		open := opens(hangs, store, converse.Options{Limits: converse.Limits{Time: 2 * time.Second}})
		works, watches := start(t, store, open, nil), start(t, store, open, nil)
		synctest.Wait() // they have searched
		send(t, works, "talk", "m1", "hello")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for event, err := range watches.Watch(ctx, "talk", 0) {
			if err != nil {
				t.Fatalf("Watch: %v", err)
			}
			if ended, ok := event.(engine.Ended); ok {
				if ended.Turn != "m1" || ended.Reason != converse.ReasonTime {
					t.Errorf("the turn ended with %+v", ended)
				}
				break
			}
		}
	})
}

// A watcher asks for the next step until it knows whether the turn is over: soon if the
// conversation is in use, later if the turn goes on or the step is unknown.
func TestWatchAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var at []time.Duration
		w := engine.Watcher{Log: store, Poll: time.Second, Next: func(context.Context, string) (converse.Command, error) {
			at = append(at, time.Since(began))
			switch len(at) {
			case 1, 2:
				return nil, fmt.Errorf("talk: %w", engine.ErrBusy)
			case 3:
				return nil, errors.New("the database is away")
			case 4:
				return converse.Exchange{}, nil
			}
			return converse.Done{Reason: converse.ReasonTime}, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ends := 0
		for event := range w.Watch(ctx, "talk", 1) {
			if _, ok := event.(engine.Ended); ok {
				ends++
			}
		}
		if fmt.Sprint(at) != "[0s 1s 2s 12s 22s]" || ends != 1 {
			t.Errorf("it asked at %v, and reported %d ends; want one", at, ends)
		}
	})
}

// A failure is reported once at a position. After one that is retried, the watcher asks again, and
// after another it does not.
func TestWatchAsksAgainAfterAFailure(t *testing.T) {
	for retried, want := range map[bool]string{false: "[ away]", true: "[ away time_limit ]"} {
		synctest.Test(t, func(t *testing.T) {
			store := history.NewMemory()
			if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
				t.Fatal(err)
			}
			failure := engine.Ended{Error: "away"}
			if retried {
				failure.Again = time.Now().Add(time.Second)
			}
			w := engine.Watcher{
				Log: store, Poll: time.Second,
				Next: func(context.Context, string) (converse.Command, error) {
					return converse.Done{Reason: converse.ReasonTime}, nil
				},
				Failed: func(string, int) (engine.Ended, bool) { return failure, true },
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var ends []string
			for event := range w.Watch(ctx, "talk", 1) {
				if ended, ok := event.(engine.Ended); ok {
					ends = append(ends, fmt.Sprint(ended.Reason, " ", ended.Error))
				}
			}
			if fmt.Sprint(ends) != want {
				t.Errorf("retried: %v; the ends are %q, want %q", retried, ends, want)
			}
		})
	}
}

// A watcher that is already there reports each failure once, although the stream has it late or never.
func TestWatchFindsALaterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		asked, began, stream := 0, time.Now(), engine.NewStream()
		time.AfterFunc(5*time.Second, func() {
			_ = stream.Publish(t.Context(), "talk", engine.Delta{Turn: "m1", Position: 1, Ended: &engine.Ended{Turn: "m1", Error: "away", Attempt: 7}})
		})
		w := engine.Watcher{
			Log: store, Stream: stream, Poll: time.Second,
			Next: func(context.Context, string) (converse.Command, error) { return converse.Exchange{}, nil },
			Failed: func(string, int) (engine.Ended, bool) {
				switch asked++; {
				case asked < 3:
					return engine.Ended{}, false
				case time.Since(began) < 30*time.Second:
					return engine.Ended{Error: "away", Attempt: 7}, true
				}
				return engine.Ended{Error: "away again", Attempt: 8}, true
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var ends []string
		for event := range w.Watch(ctx, "talk", 1) {
			if ended, ok := event.(engine.Ended); ok {
				ends = append(ends, fmt.Sprint(ended.Turn, " ", ended.Error, " ", time.Since(began)))
			}
		}
		if fmt.Sprint(ends) != "[m1 away 2s m1 away again 30s]" {
			t.Errorf("the ends are %q", ends)
		}
	})
}

// A failure on a machine whose clock is behind is reported after one of a machine whose clock is ahead.
func TestWatchFailuresOfTwoClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, stream := history.NewMemory(), engine.NewStream()
		if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		fails := func(turn string, position int, attempt int64) {
			_ = stream.Publish(t.Context(), "talk", engine.Delta{Turn: turn, Position: position, Ended: &engine.Ended{Turn: turn, Error: "away", Attempt: attempt}})
		}
		time.AfterFunc(time.Second, func() { fails("m1", 1, 10) })
		time.AfterFunc(2*time.Second, func() {
			_ = store.Append(t.Context(), "talk", 1, said("m2", "again"))
			fails("m2", 2, 5)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := engine.Watcher{Log: store, Stream: stream, Poll: time.Second}
		var ends []string
		for event := range w.Watch(ctx, "talk", 1) {
			if ended, ok := event.(engine.Ended); ok && ended.Error != "" {
				ends = append(ends, fmt.Sprint(ended.Turn, " ", ended.Attempt))
			}
		}
		if fmt.Sprint(ends) != "[m1 10 m2 5]" {
			t.Errorf("the failures are %q", ends)
		}
	})
}

// A Watch of a closed engine yields ErrClosed and nothing else.
func TestWatchAfterClose(t *testing.T) {
	store := history.NewMemory()
	if err := store.Append(t.Context(), "talk", 0, said("m1", "hello"), answer("a1")); err != nil {
		t.Fatal(err)
	}
	local := start(t, store, opens(model(echo), store, converse.Options{}), nil)
	if err := local.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		onlyClosed(t, local)
	}
}

// onlyClosed checks that Watch yields ErrClosed and nothing else.
func onlyClosed(t *testing.T, local *engine.Local) {
	t.Helper()
	errs := 0
	for event, err := range local.Watch(t.Context(), "talk", 0) {
		if errs++; !errors.Is(err, engine.ErrClosed) {
			t.Fatalf("Watch yields %+v, %v", event, err)
		}
	}
	if errs != 1 {
		t.Fatalf("Watch yields %d errors", errs)
	}
}

// distant is a stream that is never reached.
type distant struct {
	engine.Stream
	asked chan struct{}
}

func (d distant) Subscribe(ctx context.Context, _ string) (<-chan engine.Delta, error) {
	close(d.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A Watch that subscribes to its stream while the engine is closed ends with ErrClosed.
func TestCloseDuringASubscription(t *testing.T) {
	store, stream := history.NewMemory(), distant{engine.NewStream(), make(chan struct{})}
	local := start(t, store, opens(model(echo), store, converse.Options{}), &engine.Options{Stream: stream})
	var closing sync.WaitGroup
	closing.Go(func() {
		<-stream.asked
		if err := local.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	onlyClosed(t, local)
	closing.Wait()
}
