// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
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

// An imported fork that has no canister of its own, and a copy under another ID, rest in the middle of a turn
// until its last message is sent again. An ordinary conversation goes on by itself.
func TestImportOfWhatRests(t *testing.T) {
	source := history.NewMemory()
	if err := source.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
		t.Fatal(err)
	}
	owner := "client"
	if err := source.Describe(t.Context(), "talk", history.Change{Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	if err := source.Fork(t.Context(), "talk", 1, "fork"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		exported, id string
		rests        bool
	}{{"fork", "fork", true}, {"talk", "copy", true}, {"talk", "talk", false}} {
		t.Run(test.id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text strings.Builder
				if err := bundle.Export(t.Context(), &text, source, test.exported); err != nil {
					t.Fatal(err)
				}
				store := history.NewMemory()
				named := &bundle.ImportOptions{ID: func(string) string { return test.id }}
				for info, err := range bundle.Import(t.Context(), store, strings.NewReader(text.String()), named) {
					if err != nil || info.ID != test.id || info.Owner != owner || info.Length != 1 {
						t.Fatalf("%+v, %v", info, err)
					}
				}
				var all []string
				for info := range store.List(t.Context(), history.Filter{}) {
					all = append(all, info.ID)
				}
				asked := 0
				local := start(t, store, opens(model(func(context.Context, []canister.Canister) (string, error) {
					asked++
					return "hello", nil
				}), store, converse.Options{}), nil)
				synctest.Wait()
				if asked > 0 == test.rests || len(all) != 1 {
					t.Errorf("the model was asked %d times at the start; the store has %q", asked, all)
				}
				send(t, local, test.id, "m1", "hello")
				if synctest.Wait(); asked != 1 {
					t.Errorf("the model was asked %d times after the message", asked)
				}
			})
		})
	}
}
