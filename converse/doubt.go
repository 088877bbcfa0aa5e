// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/inner"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/waitrules"
	"github.com/consort-go/consort/invoker"
)

// resolveDoubt decides about a call that earlier work has begun.
func (g *gate) resolveDoubt(c *call) callDecision {
	s := c.state
	switch {
	case g.batch.postpones():
		return callDecision{postponed: true}
	case g.batch.ctx.Err() != nil:
		return callDecision{failure: s.Unknown(fmt.Sprintf("Before its outcome could be found out, %s.", g.batch.whyOver()))}
	case c.repeatable() && g.stillApproved(c):
		return g.repeat(c, s.Intent.Approved)
	case c.repeatable() && g.opts.Approve != nil:
		return g.approveRepeat(c)
	case g.opts.AskDoubt:
		return g.askOutcome(c)
	}
	return callDecision{failure: s.Unknown("")}
}

// repeatable reports whether the call can be made a second time: its tool said so when
// the call was begun, still exists and says so now, and the arguments of the attempt
// are known.
func (c *call) repeatable() bool {
	return c.state.Intent.Repeatable && whole(c.state.Intent) && c.tool != nil && c.tool.Repeatable()
}

// stillApproved reports whether the approval of the previous attempt still holds for
// the next one, which is the same use of it. If there was no approval, it reports
// whether none is needed.
func (g *gate) stillApproved(c *call) bool {
	intent := c.state.Intent
	if !wasApproved(intent) {
		return g.opts.Approve == nil
	}
	identity, err := g.batch.turn.identity()
	return err == nil && intent.Identity == identity && intent.Fingerprint == fingerprintOf(c) && !g.expired(intent.Approved)
}

func wasApproved(intent canister.Intent) bool { return intent.Wait != "" || !intent.Approved.IsZero() }

// approveRepeat asks for an approval of a second attempt, because the first approval does
// not hold for it.
func (g *gate) approveRepeat(c *call) callDecision {
	first := g.repeat(c, time.Time{})
	if first.failure != nil {
		return first
	}
	r := g.approve(c, first.arguments)
	switch {
	case r.postponed || r.failure != nil && g.batch.postpones():
		return callDecision{postponed: true}
	case r.awaits != nil: // the person who is asked may know the outcome of the first
		r.awaits.For = canister.WaitOutcome
		return r
	case r.failure != nil:
		return callDecision{failure: c.state.Unknown("Approval of a second attempt was requested. " + r.failure.Message)}
	case string(r.arguments) != string(first.arguments):
		return callDecision{failure: c.state.Unknown("It was not repeated: the approval has other arguments.")}
	}
	first.approved = r.approved
	return first
}

// repeat lets a call be made again, with the same arguments.
func (g *gate) repeat(c *call, approved time.Time) callDecision {
	arguments, failure := g.prepare(c)
	switch {
	case failure != nil && failure.Code != invoker.OutcomeUnknown && c.state.InDoubt():
		return callDecision{failure: c.state.Unknown("It was not repeated: " + failure.Message)}
	case failure != nil:
		return callDecision{failure: inner.Ended(c.state, failure)}
	case !whole(c.state.Intent):
		return callDecision{failure: c.state.Barred(invoker.Denied, "the log does not have its arguments, because they contain secrets")}
	}
	v := callDecision{arguments: arguments, wait: c.state.Intent.Wait, approved: approved}
	if changed := c.state.Intent.Arguments; changed != "" {
		v.arguments, v.changed = []byte(changed), true
	}
	return v
}

// applyOutcome applies the answer to a wait for the outcome of a call.
func (g *gate) applyOutcome(c *call) callDecision {
	s := c.state
	switch by := s.Answer.By; {
	case s.Wait.Conversation != g.opts.ID: // a fork: the answer does not hold here
		return g.resolveDoubt(c)
	case s.Answer.Verdict == canister.VerdictAllow && g.batch.postpones():
		return callDecision{postponed: true}
	case s.Answer.Verdict == canister.VerdictAllow && (c.tool == nil || !g.stillBound(c, s.Wait) || g.expired(waitrules.Expiry(s.Wait, s.Answer))):
		return g.resolveDoubt(c)
	case s.Answer.Verdict == canister.VerdictAllow:
		return g.repeat(c, waitrules.Expiry(s.Wait, s.Answer))
	case s.Answer.Verdict == canister.VerdictDone:
		return callDecision{by: by, content: s.Answer.Content, done: true}
	case s.Answer.Verdict == canister.VerdictUnknown:
		return callDecision{by: by, failure: s.Unknown(calls.Because("The outcome cannot be found out, according to "+textcut.Bytes(by, bounds.MaxQuoted), s.Answer.Reason))}
	}
	return callDecision{failure: s.Unknown("No person answered in time whether it took effect.")}
}

// askOutcome waits for a person who finds out the outcome. The answer may let the call be made
// again, so only the person who had to approve it may give it.
func (g *gate) askOutcome(c *call) callDecision {
	arguments := c.state.Intent.Arguments
	if arguments == "" {
		arguments = c.invocation.Arguments
	}
	wait, failure := g.newWait(c, canister.WaitOutcome, deferral{who: calls.Named(g.before, c.state.Intent.Wait)}, arguments)
	if failure != nil {
		failure = c.state.Unknown("No person could be asked.")
	}
	return callDecision{awaits: wait, failure: failure}
}

// whole reports whether the log has the complete arguments of an attempt.
func whole(intent canister.Intent) bool {
	return intent.Arguments == "" || jsontext.IsObject([]byte(intent.Arguments))
}
