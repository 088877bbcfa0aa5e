// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ruling is the decision about a call: make it with the arguments, unless one of the
// fields of the second group is set.
type ruling struct {
	arguments json.RawMessage
	changed   bool      // the arguments are not the model's
	wait      string    // the wait whose answer allowed the call
	by        string    // who answered
	approved  time.Time // when the approval expires; zero if none was asked for

	put     bool             // suspended: later work carries the call on
	awaits  *canister.Wait   // the call waits for an answer
	failure *invoker.Failure // why the call is not made
	done    bool             // the call was made, and content is its outcome
	content []canister.Content
}

// rule decides about a call. Options.Forbid comes last and overrides every earlier
// decision.
func (b *batch) rule(c *call) ruling {
	r := b.ruled(c)
	if b.opts.Forbid == nil || r.put || r.awaits != nil || r.failure != nil || r.done {
		return r
	}
	reason, forbidden := "The rules cannot be asked.", true
	if err := contain.Call("Options.Forbid", func() { reason, forbidden = b.opts.Forbid(b.ctx, approvalOf(c, r.arguments)) }); err != nil {
		event.Log(b.ctx, b.log, zapcore.ErrorLevel, "approval failed", event.ApprovalFailed, zap.String("tool", c.invocation.Name), zap.Error(err))
	}
	switch {
	case !forbidden:
		return r
	case c.standing.doubt || c.standing.wait.For == canister.WaitOutcome:
		return ruling{failure: c.standing.unknown("It was not made again, which is denied: " + reason)}
	}
	return denied("The call was denied and not started: %s", reason)
}

// approvalOf returns the approval to decide for a call.
func approvalOf(c *call, arguments json.RawMessage) Approval {
	definition := c.tool.Definition()
	return Approval{
		Invocation: c.invocation, Ensemble: c.tool.Ensemble().Name(), Tool: definition.Name,
		Definition: definition, Arguments: arguments,
	}
}

// ruled decides about a call, from the history first.
func (b *batch) ruled(c *call) ruling {
	s := c.standing
	switch {
	case s.doubt:
		return b.resolve(c)
	case s.wait.For == canister.WaitOutcome:
		return b.outcome(c)
	}
	arguments, failure := b.prepare(c)
	switch {
	case failure != nil:
		return ruling{failure: failure}
	case s.wait.For == canister.WaitApproval:
		return b.approved(c, arguments)
	case s.wait.For == canister.WaitElicitation && b.bound(c, s.wait) && b.stillApproved(c):
		return b.again(c, s.intent.Approved)
	case s.wait.For == canister.WaitElicitation && wasApproved(s.intent):
		return b.anew(c, arguments)
	}
	return b.decide(c, arguments)
}

// approved applies the answer to a deferred approval.
func (b *batch) approved(c *call, arguments json.RawMessage) ruling {
	wait, answer := c.standing.wait, c.standing.answer
	switch {
	case inherited(wait, b.opts.ID):
		return b.anew(c, arguments)
	case answer.ID == "":
		return denied("The call was not started: it needs an approval, and nobody gave one before %s.", wait.Deadline.UTC().Format(time.RFC3339))
	case !b.bound(c, wait) || wait.Arguments != string(arguments) || b.usedUp(c, wait):
		return b.anew(c, arguments)
	case answer.Verdict != canister.VerdictDeny && b.expired(expiry(wait, answer)):
		return b.anew(c, arguments)
	case answer.Verdict == canister.VerdictAllow:
		return ruling{arguments: arguments, wait: wait.ID, by: answer.By, approved: expiry(wait, answer)}
	case answer.Verdict == canister.VerdictChange && isObject(answer.Arguments):
		return ruling{arguments: answer.Arguments, changed: true, wait: wait.ID, by: answer.By, approved: expiry(wait, answer)}
	}
	refused := denied("%s", because("The call was denied by "+textcut.Bytes(answer.By, maxQuoted)+" and not started", answer.Reason))
	refused.by = answer.By
	return refused
}

// anew asks again for an approval that no longer holds.
func (b *batch) anew(c *call, arguments json.RawMessage) ruling {
	if b.opts.Approve == nil {
		return denied("The call was not started: its approval was for something else, and nobody can be asked again.")
	}
	return b.decide(c, arguments)
}

func denied(format string, args ...any) ruling {
	return ruling{failure: invoker.Failf(invoker.Denied, format, args...)}
}

// bound reports whether an answer to a wait applies to the call as it is now.
func (b *batch) bound(c *call, wait canister.Wait) bool {
	identity, err := b.identity()
	return err == nil && wait.Conversation == b.opts.ID && wait.Identity == identity && wait.Fingerprint == fingerprintOf(c)
}

// expiry returns when an answer that allows a call expires: it holds for as long as
// there was time to give it.
func expiry(wait canister.Wait, answer canister.Answer) time.Time {
	return answer.Time.Add(wait.Deadline.Sub(wait.Time))
}

// expired reports whether the time of an approval is over.
func (b *batch) expired(until time.Time) bool { return b.opts.Now().After(until) }

// usedUp reports whether another call was made with the answer to a wait.
func (b *batch) usedUp(c *call, wait canister.Wait) bool {
	for _, other := range tail(b.before) {
		if intent, ok := other.(canister.Intent); ok && intent.Wait == wait.ID && intent.Invocation != c.invocation.ID {
			return true
		}
	}
	return false
}

// newWait makes a wait for an answer about a call.
func (b *batch) newWait(c *call, what canister.WaitFor, d deferral, arguments string) (*canister.Wait, *invoker.Failure) {
	identity, err := b.identity()
	if err != nil {
		return nil, &invoker.Failure{Code: invoker.Internal, Message: "The call was not started: it cannot be said for whom.", Cause: err}
	}
	if d.within <= 0 {
		d.within = b.opts.WaitFor
	}
	now := b.opts.Now()
	return &canister.Wait{
		Head:       canister.Head{Time: now},
		For:        what,
		Invocation: c.invocation.ID, Conversation: b.opts.ID,
		Deadline: now.Add(d.within), Who: d.who,
		Identity: identity, Fingerprint: fingerprintOf(c), Arguments: arguments,
	}, nil
}

// identity returns a digest of the trusted values that the work is done for. It differs
// between conversations, so that it does not reveal that two are for the same person.
func (t *turn) identity() (string, error) {
	who, err := owner.Of(t.ctx, t.opts.Identity)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(t.opts.ID+"\x00"), who[:]...))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// fingerprintOf returns the fingerprint of the tool's definition, or "" without a tool.
func fingerprintOf(c *call) string {
	if c.tool == nil {
		return ""
	}
	return pins.Fingerprint(c.tool.Definition())
}

// decide asks for approval.
func (b *batch) decide(c *call, arguments json.RawMessage) ruling {
	if b.opts.Approve == nil {
		return ruling{arguments: arguments}
	}
	decision, err := b.askApproval(approvalOf(c, arguments))
	switch {
	case errors.Is(err, ErrSuspended):
		return ruling{put: true}
	case err != nil && b.ctx.Err() != nil:
		return ruling{failure: invoker.Failf(invoker.Canceled, "The call was not started: %s while it waited for approval.", b.whyOver())}
	case err != nil:
		event.Log(b.ctx, b.log, zapcore.ErrorLevel, "approval failed", event.ApprovalFailed, zap.String("tool", c.invocation.Name), zap.Error(err))
		return denied("The call was not started: it needs an approval, and no decision was reached.")
	case decision.deferred != nil:
		wait, failure := b.newWait(c, canister.WaitApproval, *decision.deferred, string(arguments))
		return ruling{awaits: wait, failure: failure}
	case decision.denied:
		return denied("The call was denied and not started: %s", decision.reason)
	case decision.changed && (!isObject(decision.arguments) || len(decision.arguments) > MaxAnswer):
		event.Log(b.ctx, b.log, zapcore.ErrorLevel, "approval changed the arguments into something that is not a JSON object, or too long", event.ApprovalFailed, zap.String("tool", c.invocation.Name))
		return ruling{failure: invoker.Failf(invoker.Internal, "The call was not started: its approval failed.")}
	case decision.changed:
		return ruling{arguments: decision.arguments, changed: true, approved: b.opts.Now().Add(b.opts.WaitFor)}
	}
	return ruling{arguments: arguments, approved: b.opts.Now().Add(b.opts.WaitFor)}
}

// askApproval calls the program's function, which may panic. It stops waiting when the
// work ends or is suspended.
func (b *batch) askApproval(ask Approval) (Decision, error) {
	type answer struct {
		Decision
		error
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	answers := make(chan answer, 1)
	b.background.run("Options.Approve", func() {
		reached := answer{error: errors.New("the approval function did not return")}
		defer func() { answers <- reached }()
		defer caught("Options.Approve", &reached.error)
		decision, err := b.opts.Approve(ctx, ask)
		reached = answer{decision, contain.Error(err)}
	})
	select {
	case reached := <-answers:
		return reached.Decision, reached.error
	case <-b.ctx.Done():
		return Decision{}, context.Cause(b.ctx)
	case <-b.piece.suspended:
		cancel(ErrSuspended)
		return Decision{}, ErrSuspended
	}
}
