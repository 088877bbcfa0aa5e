// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
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
