// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker"
)

// What a conversation waits for, nobody waits for in its fork, where the answer
// would not hold: there it is asked at once, and the answer to that holds.
func TestForkAsksAnew(t *testing.T) {
	asks := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Size?"})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(result.Action, result.Content))}, nil
	})
	later := func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, converse.Later(0, "")
	}
	for _, test := range []struct {
		name    string
		behind  []canister.Canister
		tool    invoker.Invoker
		options converse.Options
		waits   canister.WaitFor
		answer  canister.Answer
		want    string
	}{
		{
			"an approval", nil, echo("act"), converse.Options{Approve: defers}, canister.WaitApproval,
			canister.Answer{Verdict: canister.VerdictAllow}, `act {"n":1}`,
		},
		{"an outcome", []canister.Canister{intent(false)}, echo("act"), converse.Options{AskDoubt: true}, canister.WaitOutcome,
			canister.Answer{Verdict: canister.VerdictDone, Content: canister.Texts("made")}, "made"},
		{"a question", nil, idempotent(asks), converse.Options{Ask: later}, canister.WaitElicitation,
			canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{"size":4}`)}, "acceptmap[size:4]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, roster := put(t, test.behind...), newRoster(t, test.tool)
			first := carryOn(t, process(t, store, roster, test.options), converse.ReasonWaiting).Waits[0]
			if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), "fork"); err != nil {
				t.Fatal(err)
			}
			answers := func(id string, wait canister.Wait) error {
				test.answer.Wait, test.answer.By = wait.ID, "dana"
				return waits.Answer(t.Context(), store, id, test.answer, time.Now())
			}
			forked := test.options
			forked.ID = "fork"
			if err := answers("fork", first); !errors.Is(err, waits.ErrNotOpen) {
				t.Errorf("the wait of the other conversation is answered with %v", err)
			}
			talk := process(t, store, roster, forked)
			test.answer.Wait, test.answer.By = first.ID, "dana"
			if err := talk.Add(t.Context(), test.answer); !errors.Is(err, waits.ErrNotOpen) {
				t.Errorf("the wait of the other conversation takes %v", err)
			}
			if _, waits := talk.Next().(converse.Await); waits {
				t.Error("the fork waits for what the other conversation waits for")
			}
			own := carryOn(t, talk, converse.ReasonWaiting).Waits
			if len(own) != 1 || own[0].ID == first.ID || own[0].For != test.waits || own[0].Conversation != "fork" {
				t.Fatalf("the fork waits for %+v", own)
			}
			for id, wait := range map[string]canister.Wait{"fork": own[0], "talk": first} {
				if err := answers(id, wait); err != nil {
					t.Fatal(err)
				}
				options := test.options
				options.ID = id
				talk := process(t, store, roster, options, done)
				carryOn(t, talk, converse.ReasonAnswered)
				if r := results(talk.History()); len(r) != 1 || canister.TextOf(r[0].Content) != test.want {
					t.Errorf("the results in %s are %v", id, r)
				}
			}
		})
	}
}

// A fork makes calls of its own: each carries the key of its own conversation, and the
// same one again on the next attempt. So a server that remembers keys does not take
// what somebody approved in the fork for what it did for the parent.
func TestForkHasKeysOfItsOwn(t *testing.T) {
	var l ledger
	store, roster := put(t), newRoster(t, l.tool("act"))
	carryOn(t, process(t, store, roster, converse.Options{Approve: defers}), converse.ReasonWaiting)
	ids := []string{"talk", "fork", "import"}
	for _, id := range ids[1:] {
		if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), id); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, id := range ids {
		options := converse.Options{ID: id, Approve: defers}
		wait := carryOn(t, process(t, store, roster, options), converse.ReasonWaiting).Waits[0]
		if err := waits.Answer(t.Context(), store, id, canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		carryOn(t, process(t, store, roster, options, done), converse.ReasonAnswered)
		want = append(want, keyOf(id, "i1")+` {"n":1}`)
		if in := of[canister.Intent](t, store, id); len(in) != 1 || in[0].Key != keyOf(id, "i1") {
			t.Errorf("the intents in %s are %+v", id, in)
		}
	}
	if !slices.Equal(l.calls, want) {
		t.Errorf("the calls are %q, want %q", l.calls, want)
	}
}

// What was begun before the fork, and may be made again, carries in each of the two
// the key of that conversation. One that has no ID, and whose history goes on in
// another process, keeps its keys.
func TestKeysOfNextAttempts(t *testing.T) {
	var l ledger
	store := put(t, intent(true))
	if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), "fork"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"talk", "fork"} {
		carryOn(t, process(t, store, newRoster(t, idempotent(l.tool("act"))), converse.Options{ID: id}, done), converse.ReasonAnswered)
	}
	history := of[canister.Canister](t, put(t), "talk")
	for range 2 {
		talk := converse.New(conversetest.NewScript(done), newRoster(t, l.tool("act")), &converse.Options{History: history})
		carryOn(t, talk, converse.ReasonAnswered)
	}
	want := []string{keyOf("talk", "i1") + ` {"n":1}`, keyOf("fork", "i1") + ` {"n":1}`, `i1 {"n":1}`, `i1 {"n":1}`}
	if !slices.Equal(l.calls, want) {
		t.Errorf("the calls are %q, want %q", l.calls, want)
	}
}

// Where nobody can be asked, it is denied at once; a timer goes on in a fork, for as
// long as it has to.
func TestForkOfWhatNobodyCanBeAsked(t *testing.T) {
	var l ledger
	store := put(t)
	carryOn(t, process(t, store, newRoster(t, l.tool("act")), converse.Options{Approve: defers}), converse.ReasonWaiting)
	timer := canister.Wait{Head: head("w"), For: canister.WaitTimer, Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
	if err := store.Append(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), timer); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]converse.Reason{4: converse.ReasonAnswered, 5: converse.ReasonWaiting} {
		id := fmt.Sprint("fork", at)
		if err := store.Fork(t.Context(), "talk", at, id); err != nil {
			t.Fatal(err)
		}
		talk := process(t, store, newRoster(t, l.tool("act")), converse.Options{ID: id}, done)
		turn := carryOn(t, talk, want)
		if r := results(talk.History()); want == converse.ReasonAnswered && r[0].Code != "DENIED" || l.count() != 0 {
			t.Errorf("fork at %d: %+v, the results are %v", at, turn, r)
		}
	}
}
