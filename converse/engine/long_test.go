// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// metered counts the canisters that are read of a store.
type metered struct {
	history.Store
	read atomic.Int64
}

func (m *metered) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for c, err := range m.Store.Read(ctx, id, after) {
			m.read.Add(1)
			if !yield(c, err) {
				return
			}
		}
	}
}

// summarised is a store with a conversation of so many canisters; a summary replaces all
// but the last five. They are a day old.
func summarised(t *testing.T, length int) *metered {
	t.Helper()
	store := &metered{Store: history.NewMemory()}
	at := time.Now().Add(-24 * time.Hour)
	list := []canister.Canister{canister.Supervisor{Head: canister.Head{ID: "s", Time: at}, Content: canister.Texts("Be brief.")}}
	for i := len(list); i < length; i += 2 {
		list = append(list,
			canister.User{Head: canister.Head{ID: fmt.Sprint("u", i), Time: at}, Content: canister.Texts("Well?")},
			canister.Assistant{Head: canister.Head{ID: fmt.Sprint("a", i), Time: at}, Content: canister.Texts("Yes."), Finish: canister.FinishStop})
	}
	through := len(list) - 4
	mark := fmt.Sprintf(`{"through":%q,"tokens":50,"place":%d,"instructions":[0]}`, list[through].Header().ID, through)
	list = append(list, canister.Document{
		Head: canister.Head{
			ID: "summary", Time: at, Extra: canister.Extra{Metadata: canister.Fields{"io.github.consort-go/compaction": json.RawMessage(mark)}},
		},
		Content: canister.Texts("They agree."),
	})
	if err := store.Append(t.Context(), "talk", 0, list...); err != nil {
		t.Fatal(err)
	}
	return store
}

// The cost of every operation of an engine depends on the last turns of the conversation,
// and not on earlier ones.
func TestLongConversationsCostNoMore(t *testing.T) {
	for _, length := range []int{100, 20_000} {
		synctest.Test(t, func(t *testing.T) {
			store := summarised(t, length)
			var told atomic.Int64
			count := model(func(_ context.Context, history []canister.Canister) (string, error) {
				told.Store(int64(len(history)))
				return "Indeed.", nil
			})
			local := start(t, store, opens(count, store, converse.Options{}), nil)
			synctest.Wait()
			info, err := store.Info(t.Context(), "talk")
			if err != nil {
				t.Fatal(err)
			}
			store.read.Store(0)
			most := int64(0)
			step := func(what string, do func() error) {
				t.Helper()
				if err := do(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				synctest.Wait()
				read := store.read.Swap(0)
				if most = max(most, read); read > 400 {
					t.Errorf("%s: %d of %d canisters were read", what, read, length)
				}
			}
			message := said("m1", "Well?")
			message.Time = time.Now()
			step("send", func() error { return local.Send(t.Context(), "talk", message) })
			step("the same again", func() error { return local.Send(t.Context(), "talk", message) })
			step("send without identity", func() error {
				return local.Send(t.Context(), "talk", canister.User{Content: canister.Texts("More?")})
			})
			step("watch", func() error {
				for event, err := range local.Watch(t.Context(), "talk", info.Length) {
					if ended, is := event.(engine.Ended); is || err != nil {
						if is && ended.Reason != converse.ReasonAnswered {
							t.Errorf("ended %+v", ended)
						}
						return err
					}
				}
				return nil
			})
			step("cancel", func() error { return local.Cancel(t.Context(), "talk") })
			if n := told.Load(); n < 8 || n > 20 {
				t.Errorf("the model was told %d canisters", n)
			}
			after, err := store.Info(t.Context(), "talk")
			if err != nil || after.Length != info.Length+4 {
				t.Errorf("%d canisters and then %d (%v)", info.Length, after.Length, err)
			}
			// Without a time the whole log is searched.
			if err := local.Send(t.Context(), "talk", said("u1", "Well?")); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if again, err := store.Info(t.Context(), "talk"); err != nil || again.Length != after.Length {
				t.Errorf("a message of old was said again: %d canisters (%v)", again.Length, err)
			}
		})
	}
}

// A Watch from any position yields the canisters after it, and reports whether the
// previous turn has ended.
func TestWatchFromAnyPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := summarised(t, 300)
		info, err := store.Info(t.Context(), "talk")
		if err != nil {
			t.Fatal(err)
		}
		watcher := engine.Watcher{Log: store, Poll: time.Second}
		for after := range info.Length + 1 {
			next, ends := after+1, 0
			for event, err := range watcher.Watch(t.Context(), "talk", after) {
				if err != nil {
					t.Fatal(err)
				}
				if added, is := event.(engine.Added); is {
					if added.Position != next {
						t.Fatalf("behind %d place %d was told, want %d", after, added.Position, next)
					}
					next++
				} else {
					ends++
				}
				if next > info.Length && ends > 0 {
					break
				}
			}
			if next != info.Length+1 {
				t.Fatalf("behind %d all up to %d was told", after, next-1)
			}
		}
	})
}

// A Watch from an early position yields its first event before it has read the rest.
func TestWatchFromTheBeginningReadsLittleAtATime(t *testing.T) {
	for _, after := range []int{0, 10} {
		store := summarised(t, 5000)
		watcher := engine.Watcher{Log: store}
		for event, err := range watcher.Watch(t.Context(), "talk", after) {
			if added, is := event.(engine.Added); err != nil || !is || added.Position != after+1 {
				t.Fatalf("the first event is %+v: %v", event, err)
			}
			break
		}
		if read := store.read.Load(); read > 100 {
			t.Errorf("a Watch from %d has read %d canisters before its first event", after, read)
		}
	}
}

// A repeated message is found even if it is followed by one that was created long before
// and arrived late, or by one without a time, wherever a read of the end of the log
// begins.
func TestSentOnceMoreBeforeWhatCameLate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, late := range map[string]time.Time{"said long before": now.Add(-3 * time.Hour), "without a time": {}} {
		for behind := range 40 {
			var list []canister.Canister
			turn := func(id string, said, answered time.Time) {
				list = append(list,
					canister.User{Head: canister.Head{ID: id, Time: said}, Content: canister.Texts("Well?")},
					canister.Assistant{
						Head: canister.Head{ID: "answer to " + id, Time: answered}, Content: canister.Texts("Yes."), Finish: canister.FinishStop,
					})
			}
			turn("first", now.Add(-5*time.Hour), now.Add(-5*time.Hour))
			turn("message", now, now)
			turn("late", late, now)
			for i := range behind {
				turn(fmt.Sprint(i), now, now)
			}
			store := history.NewMemory()
			if err := store.Append(t.Context(), "talk", 0, list...); err != nil {
				t.Fatal(err)
			}
			if err := engine.Post(t.Context(), store, nil, "talk", list[2].(canister.User), now); err != nil {
				t.Fatal(err)
			}
			if info, err := store.Info(t.Context(), "talk"); err != nil || info.Length != len(list) {
				t.Errorf("%s, and %d turns behind it: the message was taken twice: %v", name, behind, err)
			}
		}
	}
}
