// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
)

// What a conversation waits for does not hold its fork: a message to that has it ask
// anew, and the answer to that is the one that counts.
func TestForkOfWhatWaits(t *testing.T) {
	store := history.NewMemory()
	roster := tools(t, func(context.Context) (string, error) { return "did it", nil })
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model(echo), roster,
			&converse.Options{ID: id, Log: store, Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
				return converse.Defer(0, ""), nil
			}}), nil
	}
	local, err := engine.NewLocal(store, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	send(t, local, "talk", "m1", "call local__tool")
	first := waitFor(t, local, "talk", "m1").Waits[0]
	info, err := store.Info(ctx, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fork(ctx, "talk", info.Length, "fork"); err != nil {
		t.Fatal(err)
	}
	if err := local.Answer(ctx, "fork", canister.Answer{Wait: first, Verdict: canister.VerdictAllow, By: "ada"}); !errors.Is(err, waits.ErrNotOpen) {
		t.Errorf("the fork takes the answer to the wait of the other: %v", err)
	}
	message := canister.User{Head: canister.Head{ID: "m2"}, Content: canister.Texts("And now?")}
	if err := local.Send(ctx, "fork", message); !errors.Is(err, engine.ErrWaiting) {
		t.Errorf("err = %v, want ErrWaiting", err)
	}
	ended := waitFor(t, local, "fork", "m1")
	if ended.Reason != converse.ReasonWaiting || len(ended.Waits) != 1 || ended.Waits[0] == first {
		t.Fatalf("the fork ends with %+v", ended)
	}
	if err := local.Answer(ctx, "fork", canister.Answer{Wait: ended.Waits[0], Verdict: canister.VerdictAllow, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	for ended.Reason == converse.ReasonWaiting && ctx.Err() == nil {
		ended = waitFor(t, local, "fork", "m1")
	}
	if ended.Reason != converse.ReasonAnswered {
		t.Errorf("the fork ends with %+v", ended)
	}
}
