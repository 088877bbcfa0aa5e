// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// ending is a store that accepts the message of a user while the context of the Send ends, and then returns the
// error of the context.
type ending struct {
	*history.Memory
	end context.CancelFunc
}

func (e *ending) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	err := e.Memory.Append(ctx, id, length, canisters...)
	if canisters[0].Kind() == canister.KindUser && err == nil {
		e.end()
		return ctx.Err()
	}
	return err
}

// A message that the log has accepted is answered, although its append returned an error: the caller has left, or the
// connection to the database broke before the outcome was known.
func TestAppendWithUnknownOutcome(t *testing.T) {
	for name, store := range map[string]func(*history.Memory, context.CancelFunc) history.Store{
		"the caller leaves": func(log *history.Memory, end context.CancelFunc) history.Store { return &ending{log, end} },
		"the connection breaks": func(log *history.Memory, _ context.CancelFunc) history.Store {
			return &flaky{Memory: log, kind: canister.KindUser, until: time.Now().Add(time.Second), kept: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				memory := history.NewMemory()
				begun := []canister.Canister{
					said("m0", "hi"),
					canister.Assistant{Head: canister.Head{ID: "a0"}, Content: canister.Texts("hi"), Finish: canister.FinishStop},
				}
				if err := memory.Append(ctx, "talk", 0, begun...); err != nil {
					t.Fatal(err)
				}
				log := store(memory, cancel)
				local := start(t, log, opens(model(echo), log, converse.Options{}), nil)
				if err := local.Send(ctx, "talk", said("m1", "hello")); err != nil {
					t.Fatalf("Send: %v", err)
				}
				for event, err := range local.Watch(t.Context(), "talk", len(begun)) {
					if err != nil {
						t.Fatal(err)
					}
					if ended, is := event.(engine.Ended); is && ended.Turn == "m1" {
						if ended.Reason != converse.ReasonAnswered {
							t.Errorf("it ended with %+v", ended)
						}
						break
					}
				}
			})
		})
	}
}

// An approval that the log has accepted is used, although its append returned an error.
func TestAnswerWithUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Memory: history.NewMemory(), kind: canister.KindAnswer, until: time.Now().Add(time.Hour), kept: true}
		calls := 0
		roster := tools(t, func(context.Context) (string, error) { calls++; return "did it", nil })
		local := start(t, store, func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(model(echo), roster,
				&converse.Options{ID: id, Log: store, Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
					return converse.Defer(6*time.Hour, "ada"), nil
				}}), nil
		}, nil)
		send(t, local, "talk", "m1", "call local__tool")
		wait := waitFor(t, local, "talk", "m1").Waits[0]
		_ = local.Answer(t.Context(), "talk", canister.Answer{Wait: wait, Verdict: canister.VerdictAllow, By: "ada"})
		synctest.Wait()
		if calls != 1 {
			t.Errorf("the call was made %d times after the answer", calls)
		}
	})
}

// delayed is a store whose appends of one kind take two seconds, and return the error of a context that ends
// meanwhile: the canisters enter nevertheless.
type delayed struct {
	*history.Memory
	kind  canister.Kind
	leave context.CancelFunc
}

func (d *delayed) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if canisters[0].Kind() != d.kind {
		return d.Memory.Append(ctx, id, length, canisters...)
	}
	done := make(chan error, 1)
	go func() {
		time.Sleep(2 * time.Second)
		done <- d.Memory.Append(context.WithoutCancel(ctx), id, length, canisters...)
	}()
	d.leave()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A message, and an answer, that enters the log after its sender has left has an effect.
func TestTheSenderLeavesDuringTheAppend(t *testing.T) {
	for _, kind := range []canister.Kind{canister.KindUser, canister.KindAnswer} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				store := &delayed{history.NewMemory(), kind, leave}
				begun := []canister.Canister{said("m0", "hi"), canister.Assistant{Head: canister.Head{ID: "a0"}, Content: canister.Texts("hi"), Finish: canister.FinishStop}}
				if kind == canister.KindAnswer {
					begun[1] = canister.Wait{Head: canister.Head{ID: "w", Time: time.Now()}, For: canister.WaitTimer, Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
				}
				if err := store.Memory.Append(ctx, "talk", 0, begun...); err != nil {
					t.Fatal(err)
				}
				local := start(t, store, opens(model(echo), store, converse.Options{}), nil)
				synctest.Wait()
				if kind == canister.KindUser {
					_ = local.Send(ctx, "talk", said("m1", "hello"))
				} else {
					_ = local.Answer(ctx, "talk", canister.Answer{Wait: "w", Verdict: canister.VerdictCancel, By: "ada"})
				}
				time.Sleep(10 * time.Second)
				if kinds := read(t, store, "talk"); len(kinds) != 4 || kinds[3].Kind() != canister.KindAssistant {
					t.Errorf("the log has %d canisters, want 4, with an answer of the model at the end", len(kinds))
				}
			})
		})
	}
}
