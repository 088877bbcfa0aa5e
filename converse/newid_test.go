// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// faultyIDs makes IDs, and returns the first one again as often as faults says.
func faultyIDs() (newID func() string, faults *atomic.Int64) {
	fresh, faults := counterSafe(), &atomic.Int64{}
	return func() string {
		if faults.Load() > 0 {
			faults.Add(-1)
			return "id-1"
		}
		return fresh()
	}, faults
}

// logs are a conversation without a log and one with a log.
func logs() map[string]history.Log {
	return map[string]history.Log{"no log": nil, "a log": history.NewMemory()}
}

// A result that could not enter the history, because its ID was taken, is owed: the
// call gets no other result, and is not made again.
func TestOwedResultIsTheOnlyOne(t *testing.T) {
	for name, log := range logs() {
		t.Run(name, func(t *testing.T) {
			newID, faults := faultyIDs()
			calls := 0
			tool := fn("act", func(context.Context, *invoker.Call) (invoker.Output, error) {
				calls++
				faults.Store(2)
				return invoker.Output{Content: canister.Texts("made")}, nil
			})
			talk := process(t, log, newRoster(t, tool), converse.Options{NewID: newID}, asks(call("act", "{}")), done)
			if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(), "Options.NewID") {
				t.Fatalf("the error is %v", err)
			}
			carryOn(t, talk, converse.ReasonAnswered)
			if r := results(talk.History()); len(r) != 1 || canister.TextOf(r[0].Content) != "made" || calls != 1 {
				t.Errorf("after %d calls the results are %v", calls, r)
			}
		})
	}
}

// A message does not enter after a call without a result, and not before the instructions,
// if what precedes it could not enter.
func TestMessageEntersInItsPlace(t *testing.T) {
	for name, log := range logs() {
		t.Run(name, func(t *testing.T) {
			fresh, panics := counterSafe(), atomic.Bool{}
			newID := func() string { // panics once
				if panics.Swap(false) {
					panic("no identity")
				}
				return fresh()
			}
			options := converse.Options{Instructions: "Be brief.", NewID: newID}
			talk := process(t, log, newRoster(t, waiter("wait")), options, asks(call("wait", "{}")), done)
			panics.Store(true)
			if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || len(talk.History()) > 0 {
				t.Fatalf("the error is %v, the history %s", err, kindsOf(talk.History()))
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			for event := range talk.Send(ctx, canister.Text("Go.")) {
				if _, ok := event.(converse.InvocationStarted); ok {
					cancel(converse.ErrSuspended)
				}
			}
			before := kindsOf(talk.History())
			panics.Store(true)
			if _, err := talk.Ask(t.Context(), canister.Text("Stop.")); err == nil || kindsOf(talk.History()) != before {
				t.Fatalf("the error is %v, the history %s", err, kindsOf(talk.History()))
			}
			turn, err := talk.Ask(t.Context(), canister.Text("Stop."))
			if err != nil || turn.Reason != converse.ReasonAnswered {
				t.Fatal(turn.Reason, err)
			}
			sound(t, talk.History())
			want := fmt.Sprint(before, " result user assistant")
			if got := kindsOf(talk.History()); got != want || !strings.HasPrefix(got, "supervisor user ") {
				t.Errorf("the history is %s, want %s", got, want)
			}
		})
	}
}
