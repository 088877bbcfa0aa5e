// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// cutOff begins a conversation whose process dies in the call of act, which was
// approved at once: the log has its intent, and takes nothing more.
func cutOff(t *testing.T, l *ledger, options converse.Options) *history.Memory {
	t.Helper()
	store, died := history.NewMemory(), errors.New("the process died")
	log := &logged{Log: store, before: func(n int) error {
		if n > 3 { // the user, the model, the intent
			return died
		}
		return nil
	}}
	talk := process(t, log, newRoster(t, idempotent(l.tool("act"))), options, asks(call("act", `{"n":1}`)))
	if _, err := talk.Ask(asUser(t, "ann"), canister.Text("Go.")); !errors.Is(err, died) || l.count() != 1 {
		t.Fatalf("err = %v; %d effects", err, l.count())
	}
	return store
}

func asUser(t *testing.T, name string) context.Context {
	return invoker.WithTrusted(t.Context(), invoker.TrustedJSON("user", json.RawMessage(`"`+name+`"`)))
}

// An approval that was given at once lets its call be made again after a crash,
// with the same key, where it is still the same call for the same one, and for
// Options.WaitFor. Otherwise the call is asked for again.
func TestApprovalAtOnceIsBound(t *testing.T) {
	for _, test := range []struct {
		name   string
		act    func(invoker.Invoker) invoker.Invoker // the tool of the next process
		user   string                                // whose work that is
		fork   string
		after  time.Duration // until then
		nobody bool          // can be asked then
		first  converse.Decision
		then   converse.Decision // should it be asked for
		asked  int               // in the next process
		want   string            // code and part of the text of the result
		calls  []string          // arguments
	}{
		{name: "the same", then: converse.Deny("no"), want: " effect", calls: []string{`{"n":1}`, `{"n":1}`}},
		{name: "the same, with nobody to ask", nobody: true, want: " effect", calls: []string{`{"n":1}`, `{"n":1}`}},
		{
			name: "changed", first: converse.Change(json.RawMessage(`{"n":2}`)), then: converse.Deny("no"), want: " effect",
			calls: []string{`{"n":2}`, `{"n":2}`},
		},
		{name: "another tool", act: redefined, asked: 1, want: " effect", calls: []string{`{"n":1}`, `{"n":1}`}},
		{name: "another tool, denied", act: redefined, then: converse.Deny("not that"), asked: 1, want: "OUTCOME_UNKNOWN not that", calls: []string{`{"n":1}`}},
		{name: "another tool, nobody to ask", act: redefined, nobody: true, want: "OUTCOME_UNKNOWN started at", calls: []string{`{"n":1}`}},
		{name: "another identity", user: "mallory", then: converse.Deny("not you"), asked: 1, want: "OUTCOME_UNKNOWN not you", calls: []string{`{"n":1}`}},
		{name: "a fork", fork: "fork", then: converse.Deny("not here"), asked: 1, want: "OUTCOME_UNKNOWN not here", calls: []string{`{"n":1}`}},
		{name: "in time", after: 24 * time.Hour, then: converse.Deny("no"), want: " effect", calls: []string{`{"n":1}`, `{"n":1}`}},
		{name: "expired", after: 24*time.Hour + 1, then: converse.Deny("too late"), asked: 1, want: "OUTCOME_UNKNOWN too late", calls: []string{`{"n":1}`}},
		{
			name: "expired, other arguments", after: 25 * time.Hour, then: converse.Change(json.RawMessage(`{"n":3}`)),
			asked: 1, want: "OUTCOME_UNKNOWN other arguments", calls: []string{`{"n":1}`},
		},
		{name: "changed, expired, changed the same", after: 25 * time.Hour, first: converse.Change(json.RawMessage(`{"n":2}`)),
			then:  converse.Change(json.RawMessage(`{"n":2}`)),
			asked: 1, want: " effect", calls: []string{`{"n":2}`, `{"n":2}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l ledger
				always := func(d converse.Decision, asked *int) converse.ApproveFunc {
					return func(context.Context, converse.Approval) (converse.Decision, error) { *asked++; return d, nil }
				}
				asked, id := 0, "talk"
				store := cutOff(t, &l, converse.Options{Approve: always(test.first, &asked)})
				time.Sleep(test.after)
				if test.fork != "" {
					id = test.fork
					if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), id); err != nil {
						t.Fatal(err)
					}
				}
				tool := idempotent(l.tool("act"))
				if test.act != nil {
					tool = test.act(tool)
				}
				asked = 0
				options := converse.Options{ID: id, Approve: always(test.then, &asked)}
				if test.nobody {
					options.Approve = nil
				}
				if test.user == "" {
					test.user = "ann"
				}
				heir := process(t, store, newRoster(t, tool), options, done)
				turn, err := heir.Run(asUser(t, test.user))
				if err != nil || turn.Text() != "Done." || asked != test.asked {
					t.Fatalf("the turn is %+v, %v; asked %d times", turn, err, asked)
				}
				code, text, _ := strings.Cut(test.want, " ")
				if r := results(heir.History()); len(r) != 1 || r[0].Code != code || !strings.Contains(canister.TextOf(r[0].Content), text) {
					t.Errorf("the results are %v, want %s", r, test.want)
				}
				sound(t, heir.History())
				intents := of[canister.Intent](t, store, id)
				if last := intents[len(intents)-1]; len(intents) == 2 && !test.nobody && (last.Approved.IsZero() ||
					last.Fingerprint == intents[0].Fingerprint) == (test.act != nil) {
					t.Errorf("the intents are %+v", intents)
				}
				key := intents[0].Key
				for i := range test.calls {
					test.calls[i] = key + " " + test.calls[i]
				}
				if !slices.Equal(l.calls, test.calls) {
					t.Errorf("the calls are %q, want %q", l.calls, test.calls)
				}
			})
		})
	}
}

// Who decides later about a call that may have been made is asked what came of it,
// and the answer is bound as any is. What was approved twice can be made a third
// time, but not longer for that.
func TestApprovalOfASecondAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		allow := func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil }
		store := cutOff(t, &l, converse.Options{Approve: allow})
		time.Sleep(25 * time.Hour)
		heir := func(lines ...conversetest.Line) *converse.Conversation {
			return process(t, store, newRoster(t, idempotent(l.tool("act"))), converse.Options{Approve: defers}, lines...)
		}
		turn, err := heir().Run(asUser(t, "ann"))
		if err != nil || turn.Reason != converse.ReasonWaiting || turn.Waits[0].For != canister.WaitOutcome ||
			turn.Waits[0].Who != "dana" || turn.Waits[0].Arguments != `{"n":1}` {
			t.Fatalf("the turn is %+v, %v", turn, err)
		}
		answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
		time.Sleep(25 * time.Hour)
		if turn, err = heir().Run(asUser(t, "ann")); err != nil || turn.Reason != converse.ReasonWaiting || l.count() != 1 {
			t.Fatalf("the answer does not expire: the turn is %+v, %v; %d calls", turn, err, l.count())
		}
		answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
		answered := time.Now()
		time.Sleep(time.Hour)
		if turn, err = heir(done).Run(asUser(t, "ann")); err != nil || turn.Reason != converse.ReasonAnswered || l.count() != 2 {
			t.Fatalf("the turn is %+v, %v; %d calls", turn, err, l.count())
		}
		intents := of[canister.Intent](t, store, "talk")
		if last := intents[1]; last.Attempt != 2 || !last.Approved.Equal(answered.Add(24*time.Hour)) || last.Identity == "" ||
			last.Fingerprint != intents[0].Fingerprint {
			t.Errorf("the intents are %+v", intents)
		}
	})
}

// A call that nobody had to approve is not made again without approval where one
// is wanted now, and where none is wanted it is made again.
func TestApprovalThatWasNotWanted(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		var l ledger
		store := cutOff(t, &l, converse.Options{})
		options := converse.Options{}
		want, code := 2, ""
		if wanted {
			want, code = 1, "OUTCOME_UNKNOWN"
			options.Approve = func(context.Context, converse.Approval) (converse.Decision, error) {
				return converse.Deny("not any more"), nil
			}
		}
		heir := process(t, store, newRoster(t, idempotent(l.tool("act"))), options, done)
		carryOn(t, heir, converse.ReasonAnswered)
		if r := results(heir.History()); r[0].Code != code || l.count() != want {
			t.Errorf("wanted %v: the results are %v; %d calls", wanted, r, l.count())
		}
	}
}

// An approval that was given in time, and to which nobody came back for longer than
// Options.WaitFor, has expired.
func TestApprovalExpires(t *testing.T) {
	for after, want := range map[time.Duration]converse.Reason{24 * time.Hour: converse.ReasonAnswered, 24*time.Hour + 1: converse.ReasonWaiting} {
		synctest.Test(t, func(t *testing.T) {
			var l ledger
			store := history.NewMemory()
			options := converse.Options{Approve: defers}
			play(t, process(t, store, newRoster(t, l.tool("act")), options, asks(call("act", `{}`))), "Go.")
			answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
			time.Sleep(after)
			turn := carryOn(t, process(t, store, newRoster(t, l.tool("act")), options, done), want)
			if waits := len(turn.Waits); l.count()+waits != 1 || waits == 1 && turn.Waits[0].For != canister.WaitApproval {
				t.Errorf("after %v: the turn is %+v; %d calls", after, turn, l.count())
			}
		})
	}
}
