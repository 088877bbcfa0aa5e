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
