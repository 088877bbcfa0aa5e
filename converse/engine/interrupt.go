// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/appending"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/invoker"
)

// cancelled is the text that the model reads in later turns.
const cancelled = "(The turn was cancelled by the user.)"

// Interrupt ends the turn of a conversation in its log, from any process. The Cancel of
// an engine calls it. Each invocation without a result gets one, with the code
// OUTCOME_UNKNOWN if its call had begun and CANCELED if not, and an Assistant with
// [canister.FinishCancelled] ends the turn, so that no engine continues it later. A
// process that is working on the turn gets a conflict at its next append. A
// conversation in which nothing is open stays as it is. A turn that a limit has ended is
// open: an engine with other limits would continue it.
func Interrupt(ctx context.Context, log history.Log, conversation string, now time.Time) error {
	for {
		start, canisters, err := LastTurn(ctx, log, conversation, now)
		if err != nil {
			return err
		}
		ending := endingOf(canisters, now)
		if ending == nil {
			return nil
		}
		if err := appending.Append(ctx, log, conversation, start+len(canisters), ending...); !isConflict(err) {
			return err
		}
	}
}

// endingOf returns the canisters that end the open turn of a history, or nil if nothing
// is open.
func endingOf(canisters []canister.Canister, now time.Time) []canister.Canister {
	if done, ok := converse.Next(canisters, converse.Policy{}, now).(converse.Done); ok && !done.Reason.Limited() {
		return nil
	}
	begun, forwarded, returned := map[string]bool{}, map[string]bool{}, map[string]bool{}
	calls := map[string]string{} // of waits
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Intent:
			begun[c.Invocation] = true
		case canister.Wait:
			forwarded[c.Invocation], calls[c.ID] = clienttools.IsCall(c), c.Invocation
		case canister.Answer:
			returned[calls[c.Wait]] = c.Verdict == canister.VerdictAccept
		}
	}
	head := func() canister.Head { return canister.Head{ID: rand.Text(), Time: now} }
	var ending []canister.Canister
	for _, invocation := range canister.Pending(canisters) {
		code, text := invoker.Canceled, "The call was not started: the turn was cancelled first."
		switch {
		case begun[invocation.ID]:
			code, text = invoker.OutcomeUnknown, "The call was interrupted before it had a result, because the turn was cancelled. It may or may not have taken effect."
		case forwarded[invocation.ID] && returned[invocation.ID]:
			text = "The client made the call and returned a result, but the turn was cancelled before the result was used."
		case forwarded[invocation.ID]:
			text = clienttools.Unreturned("the turn was cancelled.").Message
		}
		ending = append(ending, canister.Result{
			Head: head(), Invocation: invocation.ID, Parent: invocation.Parent, Code: string(code), Content: canister.Texts(text),
		})
	}
	return append(ending, canister.Assistant{Head: head(), Content: canister.Texts(cancelled), Finish: canister.FinishCancelled})
}
