// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/histories"
	"go.uber.org/zap"
)

// hiccup is a store that cannot be listed or read until a time, or whose clock is late.
type hiccup struct {
	*history.Memory
	mu               sync.Mutex
	unlisted, unread time.Time
	damaged          time.Time // until then, lists say that each conversation cannot be read
	late             time.Duration
}

func (h *hiccup) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		h.mu.Lock()
		unlisted, damaged, late := h.unlisted, h.damaged, h.late
		h.mu.Unlock()
		if time.Now().Before(unlisted) {
			yield(history.Info{}, errors.New("the connection was lost"))
			return
		}
		if !f.Since.IsZero() {
			f.Since = f.Since.Add(late)
		}
		for info, err := range h.Memory.List(ctx, f) {
			info.Changed = info.Changed.Add(-late)
			if time.Now().Before(damaged) {
				err = errors.New("too many open files")
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func (h *hiccup) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	h.mu.Lock()
	unread := h.unread
	h.mu.Unlock()
	if time.Now().Before(unread) {
		return func(yield func(canister.Canister, error) bool) { yield(nil, errors.New("the connection was lost")) }
	}
	return h.Memory.Read(ctx, id, after)
}

// An answer of another process is used within seconds, also if no process was there when it was given, or
// the store could not be reached meanwhile.
func TestAnswersOfOtherProcessesAreFound(t *testing.T) {
	const before = -time.Second // the answer is given before the first search
	for name, test := range map[string]struct {
		running  time.Duration // how long the process has searched when the answer is given
		disturbs func(*hiccup)
	}{
		"while no process is there": {before, func(*hiccup) {}},
		"while one is there":        {11 * time.Second, func(*hiccup) {}},
		"the lists fail":            {11 * time.Second, func(h *hiccup) { h.unlisted = time.Now().Add(9 * time.Second) }},
		"the check fails":           {11 * time.Second, func(h *hiccup) { h.unread = time.Now().Add(9 * time.Second) }},
		"it cannot be read":         {11 * time.Second, func(h *hiccup) { h.damaged = time.Now().Add(9 * time.Second) }},
		"the clock is late":         {11 * time.Second, func(h *hiccup) { h.late = time.Minute }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := history.NewMemory()
				store := &hiccup{Memory: memory}
				clients := histories.ClientsOnly{Store: store, Scope: "scope-"}
				owner := clients.Owner(config.OwnerPrefix + "ada")
				err := memory.Append(t.Context(), "a", 0,
					canister.User{Head: canister.Head{ID: "u", Time: time.Now()}, Content: canister.Texts("Are you there?")},
					canister.Wait{Head: canister.Head{ID: "w", Time: time.Now()}, For: canister.WaitTimer, Conversation: "a", Deadline: time.Now().Add(6 * time.Hour)})
				if err = errors.Join(err, memory.Describe(t.Context(), "a", history.Change{Owner: &owner})); err != nil {
					t.Fatal(err)
				}
				script := conversetest.NewScript(conversetest.Line{Text: "Here I am."})
				local, err := engine.NewLocal(memory, func(_ context.Context, id string) (*converse.Conversation, error) {
					return converse.New(script, nil, &converse.Options{ID: id, Log: memory}), nil
				}, &engine.Options{Others: 11 * time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer local.Close(context.Background())
				synctest.Wait()
				served := &conversations{engine: local, store: clients, withSender: unmarked}
				stop := func() {}
				if test.running != before {
					stop = served.pollAnswers(zap.NewNop())
					time.Sleep(test.running)
				}
				store.mu.Lock()
				test.disturbs(store)
				store.mu.Unlock()
				if err := waits.Answer(t.Context(), memory, "a", canister.Answer{Wait: "w", Verdict: canister.VerdictCancel, By: "ada"}, time.Now()); err != nil {
					t.Fatal(err)
				}
				if time.Sleep(5 * time.Second); test.running == before {
					stop = served.pollAnswers(zap.NewNop())
				}
				time.Sleep(10 * time.Second)
				if info, err := memory.Info(t.Context(), "a"); err != nil || info.Last != canister.KindAssistant {
					t.Errorf("the last canister is %s, %v; want an answer of the model", info.Last, err)
				}
				stop()
			})
		})
	}
}
