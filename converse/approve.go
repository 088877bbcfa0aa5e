// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// ApproveFunc decides about one invocation before it runs. It may take as long
// as ctx lasts, for example to ask a person; the invocations of one message
// are put to it side by side. An error counts as a denial, with a reason that
// says that no decision was reached. A decision that may take longer than the
// process lasts is put off with [Defer].
type ApproveFunc func(ctx context.Context, ask Approval) (Decision, error)

// Approval is what is to be decided.
type Approval struct {
	Invocation canister.Invocation
	// Ensemble and Tool say whose tool it is, under its own name.
	Ensemble, Tool string
	Definition     *invoker.Definition
	// Arguments are those of the invocation, known to be valid JSON; for a second
	// attempt, those of the first.
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

// deferral says how long somebody has to decide or answer, and who.
type deferral struct {
	within time.Duration
	who    string
}

// Allow lets the invocation run as it is.
func Allow() Decision { return Decision{} }

// Deny keeps the invocation from running; the model is told the reason.
func Deny(reason string) Decision { return Decision{denied: true, reason: reason} }

// Change lets the invocation run with other arguments, a JSON object; the
// model is told of it with the result.
func Change(arguments json.RawMessage) Decision { return Decision{changed: true, arguments: arguments} }

// Defer puts the decision off: a [canister.Wait] enters the history, which
// somebody answers with [Answer] within the given time (0: Options.WaitFor),
// from any process. Who names the only one who may; empty lets anybody. The
// other invocations of the message go on, and when only waits are left the turn
// ends with [ReasonWaiting].
//
// The answer holds for this conversation, the same identity (Options.Identity),
// the same definition of the tool and the same arguments, for as long as there was
// to give it, and lets one call be made. If one of them is another when the call
// would be made, or the time is over, the approval function is asked again; without
// one the call is denied. So is a call whose wait nobody has answered in time.
//
// With Options.Log all of this, but for Options.WaitFor in place of the time, is
// true of [Allow] and [Change] too: a call that a crash has cut off, and that can be
// made again, is not asked for again where they hold still. Where they do not, it is
// not made again without another approval; one that is put off asks what came of the
// first attempt ([canister.WaitOutcome]).
func Defer(within time.Duration, who string) Decision {
	return Decision{deferred: &deferral{within, who}}
}
