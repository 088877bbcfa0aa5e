// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/invoker"
)

// A tool can call other tools ([invoker.Tools]). It requests calls and returns; they enter
// the history as invocations with a Parent, and the next step makes them like all others. When all have results, the tool is called again and finds them in the
// history. So a program can stop between any two of these steps, and another process can
// carry it on.

// mayCallTools reports whether the tool of a call may call others.
func (c *call) mayCallTools() bool {
	return c.invocation.Parent == "" && c.tool.Repeatable() && whole(c.intent)
}

// requests makes the outcome of a call that has requested others, or returns the failure
// if they cannot be made.
func (b *batch) requests(c *call, o *outcome, done completion) *invoker.Failure {
	switch {
	case b.turn.suspended() || b.postpones():
		o.postponed = true // it will request them again
	case b.ctx.Err() != nil:
		return b.turn.abandoned(c.state, invoker.Canceled, b.whyOver())
	case done.spent.Exchanges > 0 || done.later != nil:
		return invoker.Failf(invoker.Internal, "The call was stopped: its tool has asked the model or a person, and so it cannot call tools.")
	default:
		o.requested = done.calls
	}
	return nil
}

// storeRequested adds the calls that a call has requested to the history, after its intent.
func (b *batch) storeRequested(c *call, invocations []canister.Invocation) {
	var added []canister.Canister
	if c.intent.ID == "" { // without a log it is not there yet
		added = append(added, c.intent)
	}
	first := len(added)
	for _, i := range invocations {
		added = append(added, i)
	}
	if !b.turn.append(added...) {
		b.abort()
		return
	}
	for _, i := range added[first:] {
		b.emit(InvocationRequested{Invocation: i.(canister.Invocation)})
	}
}

// elapsed returns how long a call has taken that called other tools, without the time in
// which they waited for answers.
func (g *gate) elapsed(c *call) time.Duration {
	return calls.Elapsed(calls.Tail(g.before), c.state.Intent.Time, g.opts.Now())
}
