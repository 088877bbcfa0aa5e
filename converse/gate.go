// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/waitrules"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// callDecision is the decision about a call: make it with the arguments, unless one of the
// fields of the second group is set.
type callDecision struct {
	arguments json.RawMessage
	changed   bool      // the arguments are not the model's
	wait      string    // the wait whose answer allowed the call
	by        string    // who answered
	approved  time.Time // when the approval expires; zero if none was asked for

	postponed bool             // suspended: later work carries the call on
	awaits    *canister.Wait   // the call waits for an answer
	failure   *invoker.Failure // why the call is not made
	done      bool             // the call was made, and content is its outcome
	content   []canister.Content
}

// gate decides whether the calls of a batch are made. Its methods run on the goroutines
// of the calls.
type gate struct {
	batch   *batch
	opts    *Options            // of the conversation
	before  []canister.Canister // the history when the batch began
	refused bool                // no call may be made: the model was asked to answer without calls
}

// decide decides about a call. Options.Forbid comes last and overrides every earlier
// decision.
func (g *gate) decide(c *call) callDecision {
	r := g.decideFromHistory(c)
	if g.opts.Forbid == nil || r.postponed || r.awaits != nil || r.failure != nil || r.done {
		return r
	}
	reason, forbidden := "The rules failed.", true
	if err := contain.Call("Options.Forbid", func() { reason, forbidden = g.opts.Forbid(g.batch.ctx, approvalOf(c, r.arguments)) }); err != nil {
		logevent.Log(g.batch.ctx, g.batch.turn.guard.log, zapcore.ErrorLevel, "approval failed", logevent.ApprovalFailed, zap.String("tool", c.invocation.Name), zap.Error(err))
	}
	switch {
	case !forbidden:
		return r
	case c.state.InDoubt() || len(c.state.Made) > 0:
		return callDecision{failure: c.state.Barred(invoker.Denied, "that is denied: "+strings.TrimSuffix(reason, "."))}
	}
	return denied("The call was denied and not started: %s", reason)
}

// approvalOf returns the approval to decide for a call.
func approvalOf(c *call, arguments json.RawMessage) Approval {
	definition := c.tool.Definition()
	return Approval{
		Invocation: c.invocation, Ensemble: c.tool.Ensemble().Name(), Tool: definition.Name,
		Definition: definition, ReadOnly: c.tool.ReadOnly(), Arguments: arguments,
	}
}

// decideFromHistory decides about a call, from the history first.
func (g *gate) decideFromHistory(c *call) callDecision {
	s := c.state
	switch {
	case c.client != nil || clienttools.IsCall(s.Wait): // its tool may be set aside now
		return g.forward(c)
	case len(s.Made) > 0:
		return g.repeat(c, s.Intent.Approved)
	case s.Doubt:
		return g.resolveDoubt(c)
	case s.Wait.For == canister.WaitOutcome:
		return g.applyOutcome(c)
	}
	arguments, failure := g.prepare(c)
	switch {
	case failure != nil:
		return callDecision{failure: failure}
	case s.Wait.For == canister.WaitApproval:
		return g.applyApproval(c, arguments)
	case s.Wait.For == canister.WaitElicitation && g.stillBound(c, s.Wait) && g.stillApproved(c):
		return g.repeat(c, s.Intent.Approved)
	case s.Wait.For == canister.WaitElicitation && wasApproved(s.Intent):
		return g.approveAnew(c, arguments)
	}
	return g.approve(c, arguments)
}

// applyApproval applies the answer to a deferred approval.
func (g *gate) applyApproval(c *call, arguments json.RawMessage) callDecision {
	wait, answer := c.state.Wait, c.state.Answer
	switch {
	case calls.Inherited(wait, g.opts.ID):
		return g.approveAnew(c, arguments)
	case answer.ID == "":
		return denied("The call was not started: it needs an approval, and none was given before %s.", wait.Deadline.UTC().Format(time.RFC3339))
	case !g.stillBound(c, wait) || wait.Arguments != string(arguments) || calls.UsedUp(g.before, wait, c.invocation.ID):
		return g.approveAnew(c, arguments)
	case answer.Verdict != canister.VerdictDeny && g.expired(waitrules.Expiry(wait, answer)):
		return g.approveAnew(c, arguments)
	case answer.Verdict == canister.VerdictAllow:
		return callDecision{arguments: arguments, wait: wait.ID, by: answer.By, approved: waitrules.Expiry(wait, answer)}
	case answer.Verdict == canister.VerdictChange && jsontext.IsObject(answer.Arguments):
		return callDecision{arguments: answer.Arguments, changed: true, wait: wait.ID, by: answer.By, approved: waitrules.Expiry(wait, answer)}
	}
	refused := denied("%s", calls.Because("The call was denied by "+textcut.Bytes(answer.By, bounds.MaxQuoted)+" and not started", answer.Reason))
	refused.by = answer.By
	return refused
}

// approveAnew asks again for an approval that no longer holds.
func (g *gate) approveAnew(c *call, arguments json.RawMessage) callDecision {
	if g.opts.Approve == nil {
		return denied("The call was not started: its approval does not apply to this call, and no person can be asked again.")
	}
	return g.approve(c, arguments)
}

func denied(format string, args ...any) callDecision {
	return callDecision{failure: invoker.Failf(invoker.Denied, format, args...)}
}

// stillBound reports whether an answer to a wait applies to the call as it is now.
func (g *gate) stillBound(c *call, wait canister.Wait) bool {
	identity, err := g.batch.turn.identity()
	return err == nil && wait.Conversation == g.opts.ID && wait.Identity == identity && wait.Fingerprint == fingerprintOf(c)
}

// expired reports whether the time of an approval is over.
func (g *gate) expired(until time.Time) bool { return g.opts.Now().After(until) }

// newWait makes a wait for an answer about a call.
func (g *gate) newWait(c *call, what canister.WaitFor, d deferral, arguments string) (*canister.Wait, *invoker.Failure) {
	identity, err := g.batch.turn.identity()
	if err != nil {
		return nil, &invoker.Failure{Code: invoker.Internal, Message: "The call was not started: its user could not be determined.", Cause: err}
	}
	if d.within <= 0 {
		d.within = g.opts.WaitFor
	}
	now := g.opts.Now()
	return &canister.Wait{
		Head:       canister.Head{Time: now},
		For:        what,
		Invocation: c.invocation.ID, Conversation: g.opts.ID,
		Deadline: now.Add(d.within), Who: d.who,
		Identity: identity, Fingerprint: fingerprintOf(c), Arguments: arguments,
	}, nil
}

// fingerprintOf returns the fingerprint of the tool's definition, or "" without a tool.
func fingerprintOf(c *call) string {
	if c.tool == nil {
		return ""
	}
	return pins.Fingerprint(c.tool.Definition())
}

// approve asks for approval.
func (g *gate) approve(c *call, arguments json.RawMessage) callDecision {
	if g.opts.Approve == nil {
		return callDecision{arguments: arguments}
	}
	decision, err := g.callApprove(approvalOf(c, arguments))
	switch {
	case errors.Is(err, ErrSuspended) && g.batch.postpones():
		return callDecision{postponed: true}
	case err != nil && g.batch.ctx.Err() != nil:
		return callDecision{failure: invoker.Failf(invoker.Canceled, "The call was not started: %s while it waited for approval.", g.batch.whyOver())}
	case err != nil:
		logevent.Log(g.batch.ctx, g.batch.turn.guard.log, zapcore.ErrorLevel, "approval failed", logevent.ApprovalFailed, zap.String("tool", c.invocation.Name), zap.Error(err))
		return denied("The call was not started: it needs an approval, and no decision was reached.")
	case decision.deferred != nil:
		wait, failure := g.newWait(c, canister.WaitApproval, *decision.deferred, string(arguments))
		return callDecision{awaits: wait, failure: failure}
	case decision.denied:
		return denied("The call was denied and not started: %s", decision.reason)
	case decision.changed && (!jsontext.IsObject(decision.arguments) || len(decision.arguments) > calls.MaxAnswer):
		logevent.Log(g.batch.ctx, g.batch.turn.guard.log, zapcore.ErrorLevel, "the arguments changed by an approval are not a JSON object, or are too long", logevent.ApprovalFailed, zap.String("tool", c.invocation.Name))
		return callDecision{failure: invoker.Failf(invoker.Internal, "The call was not started: its approval failed.")}
	case decision.changed:
		return callDecision{arguments: decision.arguments, changed: true, approved: g.opts.Now().Add(g.opts.WaitFor)}
	}
	return callDecision{arguments: arguments, approved: g.opts.Now().Add(g.opts.WaitFor)}
}

// callApprove calls the program's function, which may panic. It stops waiting when the
// work ends or is suspended.
func (g *gate) callApprove(ask Approval) (Decision, error) {
	type answer struct {
		Decision
		error
	}
	ctx, cancel := context.WithCancelCause(g.batch.ctx)
	defer cancel(nil)
	answers := make(chan answer, 1)
	g.batch.turn.guard.background.Run("Options.Approve", func() {
		reached := answer{error: errors.New("the approval function did not return")}
		defer func() { answers <- reached }()
		defer foreign.Caught("Options.Approve", &reached.error)
		decision, err := g.opts.Approve(ctx, ask)
		reached = answer{decision, contain.Error(err)}
	})
	select {
	case reached := <-answers:
		return reached.Decision, reached.error
	case <-g.batch.ctx.Done():
		return Decision{}, context.Cause(g.batch.ctx)
	case <-g.batch.turn.piece.suspension.Done():
		cancel(ErrSuspended)
		return Decision{}, ErrSuspended
	}
}
