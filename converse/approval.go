// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// ApproveFunc decides about one invocation before it runs. It may take as long as ctx
// lasts, for example to ask a person; it is called concurrently for the invocations of
// one message. An error counts as a denial, with a reason that says that no decision
// was reached. Return [Defer] for a decision that may take longer than the process
// lives.
type ApproveFunc func(ctx context.Context, ask Approval) (Decision, error)

// Approval is an invocation that needs a decision.
type Approval struct {
	Invocation canister.Invocation
	// Ensemble and Tool name the tool's ensemble, and the tool under its own name.
	Ensemble, Tool string
	Definition     *invoker.Definition
	// ReadOnly reports whether the tool declares that it changes nothing, and its
	// ensemble is trusted in that; see [ensemble.Tool.ReadOnly].
	ReadOnly bool
	// Arguments are the arguments of the invocation, known to be valid JSON; for a
	// second attempt, the arguments of the first.
	Arguments json.RawMessage
}

// Decision is the answer to an [Approval]: [Allow], [Deny], [Change] or [Defer].
type Decision struct {
	denied    bool
	reason    string
	changed   bool
	arguments json.RawMessage
	deferred  *deferral
}

// deferral says how long a decision or an answer may take, and who may give it.
type deferral struct {
	within time.Duration
	who    string
}

// Allow lets the invocation run as it is.
func Allow() Decision { return Decision{} }

// Deny keeps the invocation from running; the model is told the reason.
func Deny(reason string) Decision { return Decision{denied: true, reason: reason} }

// Change lets the invocation run with other arguments, a JSON object; the result tells
// the model about the change.
func Change(arguments json.RawMessage) Decision { return Decision{changed: true, arguments: arguments} }

// Defer postpones the decision: a [canister.Wait] enters the history, and waits.Answer
// answers it within the given time (0 or less: Options.WaitFor), from any process. If who is
// not empty, only that person may answer. The other invocations of the message go on,
// and when only waits are left the turn ends with [ReasonWaiting].
//
// The answer allows one call. It holds for this conversation, the same identity
// (Options.Identity), the same definition of the tool and the same arguments, for
// the same time from when it was given. If one of them has changed when the call would be
// made, or the time is over, the approval function is asked again; without one the call
// is denied. A call whose wait was not answered in time is also denied.
//
// With Options.Log the same is true of [Allow] and [Change], with Options.WaitFor as
// the time: if a crash has cut off a call that can be repeated, and the approval still
// holds, it is not asked for again. If it does not hold, the call is not repeated
// without another approval; if that approval is deferred, the wait asks for the outcome
// of the first attempt ([canister.WaitOutcome]).
func Defer(within time.Duration, who string) Decision {
	return Decision{deferred: &deferral{within, who}}
}
