// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// Doubt says what becomes of a call that was begun and has no result, because a
// process died or was given up: whether it was made, the history cannot tell. A
// call whose tool says that it is read-only or idempotent is not among them: it
// is made again, with the same key.
type Doubt string

// The ways out of doubt.
const (
	// DoubtReport tells the model: the result is OUTCOME_UNKNOWN.
	DoubtReport Doubt = "report"
	// DoubtAsk waits for somebody who finds out, for as long as Options.WaitFor
	// says ([canister.WaitOutcome]): the answer is the result, or lets the call be
	// made again, or is that nobody will know. Without one in time the result is
	// OUTCOME_UNKNOWN.
	DoubtAsk Doubt = "ask"
)

// resolve finds out what to do about a call that was begun in an earlier work.
func (b *batch) resolve(c *call) ruling {
	s := c.standing
	switch {
	case b.putDown():
		return ruling{put: true}
	case b.ctx.Err() != nil:
		return ruling{failure: s.unknown(fmt.Sprintf("Before it was looked into, %s.", b.whyOver()))}
	case c.repeatable() && b.stillApproved(c):
		return b.again(c, s.intent.Approved)
	case c.repeatable() && b.opts.Approve != nil:
		return b.askAgain(c)
	case b.opts.Doubt == DoubtAsk:
		return b.askOutcome(c)
	}
	return ruling{failure: s.unknown("")}
}

// repeatable reports whether the call can be made a second time: its tool said so
// when it was begun, is there, and says so still, and it is known how it was made.
func (c *call) repeatable() bool {
	return c.standing.intent.Repeatable && whole(c.standing.intent) && c.tool != nil && c.tool.Repeatable()
}

// stillApproved reports whether the approval of the attempt before is good for the
// next one, which is the same use of it; where nobody was asked, whether nobody
// has to be.
func (b *batch) stillApproved(c *call) bool {
	intent := c.standing.intent
	if !wasApproved(intent) {
		return b.opts.Approve == nil
	}
	identity, err := b.identity()
	return err == nil && intent.Identity == identity && intent.Fingerprint == fingerprintOf(c) && !b.expired(intent.Approved)
}

func wasApproved(intent canister.Intent) bool { return intent.Wait != "" || !intent.Approved.IsZero() }

// askAgain asks for the approval of a second attempt, when that of the first does
// not hold for it.
func (b *batch) askAgain(c *call) ruling {
	first := b.again(c, time.Time{})
	if first.failure != nil {
		return first
	}
	r := b.decide(c, first.arguments)
	switch {
	case r.put || r.failure != nil && b.putDown():
		return ruling{put: true}
	case r.awaits != nil: // whoever is asked may know what came of the first
		r.awaits.For = canister.WaitOutcome
		return r
	case r.failure != nil:
		return ruling{failure: c.standing.unknown("A second attempt was asked for. " + r.failure.Message)}
	case string(r.arguments) != string(first.arguments):
		return ruling{failure: c.standing.unknown("It was not made again: it was approved with other arguments.")}
	}
	first.approved = r.approved
	return first
}

// again lets a call be made once more, as it was made before.
func (b *batch) again(c *call, approved time.Time) ruling {
	arguments, failure := b.prepare(c)
	switch {
	case failure != nil:
		return ruling{failure: failure}
	case !whole(c.standing.intent):
		return ruling{failure: c.standing.barred("the log does not have its arguments, which hold what is secret")}
	}
	v := ruling{arguments: arguments, wait: c.standing.intent.Wait, approved: approved}
	if changed := c.standing.intent.Arguments; changed != "" {
		v.arguments, v.changed = json.RawMessage(changed), true
	}
	return v
}

// outcome takes up the answer to what came of a call.
func (b *batch) outcome(c *call) ruling {
	s := c.standing
	switch by := s.answer.By; {
	case s.wait.Conversation != b.opts.ID: // a fork: the answer does not hold here
		return b.resolve(c)
	case s.answer.Verdict == canister.VerdictAllow && (c.tool == nil || !b.bound(c, s.wait) || b.expired(expiry(s.wait, s.answer))):
		return b.resolve(c)
	case s.answer.Verdict == canister.VerdictAllow:
		return b.again(c, expiry(s.wait, s.answer))
	case s.answer.Verdict == canister.VerdictDone:
		return ruling{by: by, content: s.answer.Content, done: true}
	case s.answer.Verdict == canister.VerdictUnknown:
		return ruling{by: by, failure: s.unknown(because("Nobody will know, says "+textcut.Bytes(by, maxQuoted), s.answer.Reason))}
	}
	return ruling{failure: s.unknown("Nobody who was asked could tell in time.")}
}

// askOutcome waits for somebody who finds out.
func (b *batch) askOutcome(c *call) ruling {
	arguments := c.standing.intent.Arguments
	if arguments == "" {
		arguments = c.invocation.Arguments
	}
	wait, failure := b.newWait(c, canister.WaitOutcome, deferral{}, arguments)
	if failure != nil {
		failure = c.standing.unknown("Nobody could be asked.")
	}
	return ruling{awaits: wait, failure: failure}
}

// unknown tells the model what is known of a call in doubt.
func (s *standing) unknown(more string) *invoker.Failure {
	message := fmt.Sprintf("The call was begun at %s, and what came of it was lost. It may or may not have taken effect; find out before you make it again.",
		s.intent.Time.UTC().Format(time.RFC3339))
	if more != "" {
		message += " " + more
	}
	return invoker.Failf(invoker.OutcomeUnknown, "%s", message)
}

// barred tells the model why a call may not be made now, which may have been made
// before.
func (s *standing) barred(why string) *invoker.Failure {
	switch {
	case s.doubt || s.wait.For == canister.WaitOutcome:
		return s.unknown("It was not made again: " + why + ".")
	case s.wait.For == canister.WaitElicitation:
		return invoker.Failf(invoker.Denied, "The call was given up, to be made again with the answer of a person, and was not: %s.", why)
	}
	return invoker.Failf(invoker.Denied, "The call was not started: %s.", why)
}

// because joins a statement and its reason, which may be empty.
func because(statement, reason string) string {
	if reason == "" {
		return statement + "."
	}
	return statement + ": " + reason
}
