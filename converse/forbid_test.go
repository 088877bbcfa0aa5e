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
)

// Rules that forbid a call by now win over whatever let it be made before.
func TestForbidWins(t *testing.T) {
	forbids := func(_ context.Context, ask converse.Approval) (string, bool) {
		return "No more " + ask.Tool + " of " + ask.Ensemble + string(ask.Arguments), true
	}
	allows := func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil }
	for name, test := range map[string]struct {
		begins []canister.Canister
		before converse.Options // of the process before; its wait is answered
		answer canister.Verdict
		after  converse.Options
		calls  int
		want   string
	}{
		"an approval that was put off": {
			nil, converse.Options{Approve: defers}, canister.VerdictAllow, converse.Options{Approve: defers, Forbid: forbids},
			0, `DENIED No more act of local{"n":1}`,
		},
		"one of another that is to be made again": {[]canister.Canister{intent(false)}, converse.Options{AskDoubt: true}, canister.VerdictAllow,
			converse.Options{AskDoubt: true, Forbid: forbids}, 0, "OUTCOME_UNKNOWN No more act"},
		"a second attempt": {[]canister.Canister{intent(true)}, converse.Options{}, "", converse.Options{Forbid: forbids}, 0, "OUTCOME_UNKNOWN No more act"},
		"what is allowed":  {nil, converse.Options{}, "", converse.Options{Approve: allows, Forbid: forbids}, 0, "DENIED No more act"},
		"rules that panic": {
			nil, converse.Options{}, "", converse.Options{Forbid: func(context.Context, converse.Approval) (string,
				bool) {
				panic("rules")
			}}, 0, "DENIED The rules failed",
		},
		"rules that let run": {
			nil, converse.Options{}, "", converse.Options{Forbid: func(context.Context, converse.Approval) (string,
				bool) {
				return "never", false
			}}, 1, ` act {"n":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			tool := l.tool("act")
			if len(test.begins) > 0 && test.begins[0].(canister.Intent).Repeatable {
				tool = idempotent(tool)
			}
			store, roster := put(t, test.begins...), newRoster(t, tool)
			if test.answer != "" {
				wait := carryOn(t, process(t, store, roster, test.before), converse.ReasonWaiting).Waits[0]
				if err := waits.Answer(t.Context(), store, "talk", canister.Answer{Wait: wait.ID, Verdict: test.answer, By: "dana"}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			talk := process(t, store, roster, test.after, done)
			carryOn(t, talk, converse.ReasonAnswered)
			code, text, _ := strings.Cut(test.want, " ")
			if r := results(talk.History()); len(r) != 1 || r[0].Code != code || test.calls == 0 &&
				!strings.Contains(canister.TextOf(r[0].Content), text) || l.count() != test.calls {
				t.Errorf("%d calls; the results are %v, want %s", l.count(), r, test.want)
			}
		})
	}
}
