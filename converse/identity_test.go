// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker"
)

// An approval that was given for one identity is not used up when the work is done for
// another in between, which is asked anew: it holds for the first as soon as that is
// back, also if nobody has answered the other.
func TestApprovalOutlivesAnotherIdentity(t *testing.T) {
	for name, answers := range map[string]bool{"nobody answers the other": false, "the other is answered": true} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			store, roster := put(t), newRoster(t, l.tool("act"))
			ada := converse.Options{Approve: defers, Trusted: []invoker.Value{invoker.TrustedJSON("user", []byte(`"ada"`))}}
			allow := func(wait canister.Wait) {
				if err := waits.Answer(t.Context(), store, "talk",
					canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			first := carryOn(t, process(t, store, roster, ada), converse.ReasonWaiting).Waits[0]
			allow(first)
			other := carryOn(t, process(t, store, roster, converse.Options{Approve: defers}), converse.ReasonWaiting).Waits
			if len(other) != 1 || other[0].ID == first.ID || l.count() != 0 {
				t.Fatalf("for another identity %+v is waited for, after %d calls", other, l.count())
			}
			if answers {
				allow(other[0])
			}
			carryOn(t, process(t, store, roster, ada, done), converse.ReasonAnswered)
			intents := of[canister.Intent](t, store, "talk")
			if l.count() != 1 || len(intents) != 1 || intents[0].Wait != first.ID {
				t.Errorf("%d calls; the intents are %+v, want one by the answer to %s", l.count(), intents, first.ID)
			}
		})
	}
}

// What came of a call is a fact for every identity: who looked last is believed.
func TestOutcomesAreThoseOfEveryIdentity(t *testing.T) {
	var l ledger
	store, roster := put(t, intent(false)), newRoster(t, l.tool("act"))
	ada := converse.Options{AskDoubt: true, Trusted: []invoker.Value{invoker.TrustedJSON("user", []byte(`"ada"`))}}
	answer := func(wait canister.Wait, verdict canister.Verdict) {
		t.Helper()
		if err := waits.Answer(t.Context(), store, "talk", canister.Answer{Wait: wait.ID, Verdict: verdict, By: "dana"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	first := carryOn(t, process(t, store, roster, ada), converse.ReasonWaiting).Waits[0]
	answer(first, canister.VerdictAllow)
	second := carryOn(t, process(t, store, roster, converse.Options{AskDoubt: true}), converse.ReasonWaiting).Waits[0]
	if second.For != canister.WaitOutcome || second.ID == first.ID {
		t.Fatalf("for another identity %+v is waited for", second)
	}
	answer(second, canister.VerdictDone)
	carryOn(t, process(t, store, roster, ada, done), converse.ReasonAnswered)
	if l.count() != 0 {
		t.Errorf("the call was made %d times more, though it was said to be done", l.count())
	}
}

// The outcome of a call may let it be made again, so only the person who had to approve the call
// may answer.
func TestOutcomesAreSaidByTheNamedPerson(t *testing.T) {
	var l ledger
	attempt := intent(false)
	attempt.Wait, attempt.Approved = "w", time.Now().Add(time.Hour)
	store, roster := put(t,
		canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i1", Conversation: "talk", Who: "dana", Arguments: `{"n":1}`, Deadline: time.Now().Add(time.Hour)},
		canister.Answer{Head: head("y"), Wait: "w", Verdict: canister.VerdictAllow, By: "dana"}, attempt), newRoster(t, l.tool("act"))
	options := converse.Options{AskDoubt: true, Approve: defers}
	for _, attempts := range []int{1, 2} {
		wait := carryOn(t, process(t, store, roster, options), converse.ReasonWaiting).Waits[0]
		if wait.For != canister.WaitOutcome || wait.Who != "dana" {
			t.Fatalf("after %d attempts it waits for %+v", attempts, wait)
		}
		allow := canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "eve"}
		if err := waits.Answer(t.Context(), store, "talk", allow, time.Now()); err == nil || !strings.Contains(err.Error(), "dana") {
			t.Errorf("eve's answer: %v", err)
		}
		allow.By = "dana"
		if err := waits.Answer(t.Context(), store, "talk", allow, time.Now()); err != nil {
			t.Fatal(err)
		}
		if attempts == 1 { // the second attempt is lost too
			attempt.Head, attempt.Attempt = head("t2"), 2
			if err := store.Append(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), attempt); err != nil {
				t.Fatal(err)
			}
		}
	}
	carryOn(t, process(t, store, roster, options, done), converse.ReasonAnswered)
	if l.count() != 1 {
		t.Errorf("the call was made %d times", l.count())
	}
}

// Two conversations whose options continue one slice have their own trusted values.
func TestTrustedValuesAreCopied(t *testing.T) {
	user := invoker.NewTrusted[string]("user")
	var got []string
	roster := newRoster(t, fn("whoami", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		name, _ := user.From(ctx)
		got = append(got, name)
		return invoker.Output{}, nil
	}))
	shared := make([]invoker.Value, 0, 1)
	open := func(name string) *converse.Conversation {
		options := converse.Options{ID: name, Trusted: append(shared, user.Value(name))}
		return process(t, put(t), roster, options, asks(call("whoami", "{}")), done)
	}
	ada := open("ada")
	bob := open("bob")
	play(t, ada, "Who am I?")
	play(t, bob, "Who am I?")
	if len(got) != 2 || got[0] != "ada" || got[1] != "bob" {
		t.Errorf("the tools saw %q", got)
	}
}
