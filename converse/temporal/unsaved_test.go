// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// flaky is a store that does not accept results for some time.
type flaky struct {
	*history.Memory
	until time.Time
}

func (f *flaky) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if canisters[0].Kind() == canister.KindResult && time.Now().Before(f.until) {
		return errors.New("connection reset by peer")
	}
	return f.Memory.Append(ctx, id, length, canisters...)
}

// paying is a model that calls the tool once.
type paying struct{}

func (paying) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		reply := converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishStop}}
		if request.History[len(request.History)-1].Kind() == canister.KindUser {
			reply.Invocations = []canister.Invocation{{
				Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "c", Name: "local__pay", Arguments: "{}",
			}}
		}
		yield(reply, nil)
	}
}

// A result that the log did not accept at first is in the log in the end, as long as the lease
// is valid.
func TestResultsSurviveAFailingLog(t *testing.T) {
	for _, held := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store, calls := &flaky{history.NewMemory(), time.Now().Add(10 * time.Second)}, 0
			pay, err := invoker.New("pay", "Pays.", func(context.Context, struct{}) (string, error) { calls++; return "paid, receipt", nil }, nil)
			if err != nil {
				t.Fatal(err)
			}
			roster, err := ensemble.NewRoster(ensemble.Local("local", pay))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = roster.Close(context.Background()) }()
			opts, err := (*WorkerOptions)(nil).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			w := &Worker{opts: opts, store: store, open: func(_ context.Context, id string) (*converse.Conversation, error) {
				return converse.New(paying{}, roster, &converse.Options{ID: id, Log: store}), nil
			}}
			if err := engine.Post(t.Context(), store, nil, "talk", canister.User{Content: canister.Texts("Pay.")}, time.Now()); err != nil {
				t.Fatal(err)
			}
			l := &lease{timeout: 10 * time.Second, beat: func(context.Context) error {
				if held {
					return nil
				}
				return errors.New("another worker has it")
			}}
			ctx, cancel := context.WithCancelCause(t.Context())
			l.end = cancel
			turn, err := w.carryOn(ctx, l, &engine.Publisher{Log: store, Conversation: "talk"})
			list, readErr := history.From(t.Context(), store, "talk", 0)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if held && (err != nil || turn.Reason != converse.ReasonAnswered || len(list) != 6) || !held && (err == nil || len(list) != 4) || calls != 1 {
				t.Errorf("the lease is held: %v; the turn is %+v (%v) after %d calls, and the log has %d canisters", held, turn, err, calls, len(list))
			}
		})
	}
}
