// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
)

// A result of the client that is in the log reaches the model, although its tool is not on offer
// at the process that goes on.
func TestResultOfAToolThatIsSetAside(t *testing.T) {
	store := history.NewMemory()
	first := process(t, store, nil, converse.Options{}, asks(byClient("pick", `{"n":1}`), byClient("show", `{"n":2}`)))
	brought(t, first, "pick", "show")
	turn := carryOn(t, first, converse.ReasonWaiting)
	for _, wait := range turn.Waits {
		answer := canister.Answer{Wait: wait.ID, By: "dana", Verdict: canister.VerdictAccept, Content: canister.Texts("the result")}
		if err := waits.Answer(t.Context(), store, "talk", answer, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	second := process(t, store, nil, converse.Options{Limits: converse.Limits{Tools: 1}}, done)
	carryOn(t, second, converse.ReasonAnswered)
	for _, result := range results(second.History()) {
		if text := canister.TextOf(result.Content); text != "the result" {
			t.Errorf("the model is told %s %q", result.Code, text)
		}
	}
}

// A turn that is cancelled between the answer and the result does not claim that nothing was returned.
func TestCancelledAfterTheResult(t *testing.T) {
	store := history.NewMemory()
	first := process(t, store, nil, converse.Options{}, asks(byClient("pick", `{"n":1}`)))
	brought(t, first, "pick")
	turn := carryOn(t, first, converse.ReasonWaiting)
	answer := canister.Answer{Wait: turn.Waits[0].ID, By: "dana", Verdict: canister.VerdictAccept, Content: canister.Texts("the result")}
	if err := waits.Answer(t.Context(), store, "talk", answer, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Interrupt(t.Context(), store, "talk", time.Now()); err != nil {
		t.Fatal(err)
	}
	got := of[canister.Result](t, store, "talk")
	if text := canister.TextOf(got[0].Content); strings.Contains(text, "returned no result") {
		t.Errorf("the model is told %q", text)
	}
}
