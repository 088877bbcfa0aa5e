// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
)

// Command is the next step of a conversation: [Exchange], [Invoke], [Await], [Compact]
// or [Done]. The set is closed.
type Command interface{ command() }

// Exchange is the step that asks the model.
type Exchange struct {
	// Final means that the model must answer without tools, because Limited was reached.
	Final   bool
	Limited Reason // the limit that Final is set for
}

// Invoke is the step that runs the tools that the model called.
type Invoke struct {
	// Pending are the invocations that lack a result and do not wait for an answer, in
	// the model's order; never empty.
	Pending []canister.Invocation
	// Refused means that none of them may run: the model called tools in an answer that
	// had to be without them.
	Refused bool
}

// Await says that the conversation rests until one of its waits is answered (see package
// waits) or its deadline has passed.
type Await struct {
	// Waits are the open waits, in the order of the history; never empty.
	Waits []canister.Wait
	// Deadline is their earliest deadline; the next step changes then.
	Deadline time.Time
}

// Done says that the turn is over: the user is next.
type Done struct{ Reason Reason }

func (Exchange) command() {}
func (Invoke) command()   {}
func (Await) command()    {}
func (Done) command()     {}

// Next returns the next step of a conversation from its history, which must pass
// [sequence.Check], and the policy alone. It is a pure function: the loop takes the step
// that it returns, and a program with the same history gets the same answer.
//
// A turn begins with the last User canister of the history. Now is used for Limits.Time
// and the deadlines of waits.
func Next(history []canister.Canister, policy Policy, now time.Time) Command {
	policy.Limits = policy.Limits.withDefaults()
	t := readTurn(history, policy.Limits)
	return policy.next(history, &t, now)
}

// next is Next for a history whose last turn was read. Limits have their defaults.
func (policy Policy) next(history []canister.Canister, t *turnState, now time.Time) Command {
	limits := policy.Limits
	pending, waits := calls.Open(policy.Conversation, policy.Identity, history, now)
	switch {
	case len(pending) > 0:
		return Invoke{Pending: pending, Refused: t.final != ""}
	case len(waits) > 0:
		return Await{Waits: waits, Deadline: calls.FirstDeadline(waits)}
	case !t.begun:
		return Done{Reason: ReasonNothing}
	case t.final != "":
		return Done{Reason: t.final}
	case t.answered:
		return Done{Reason: reasonOf(t.last.Finish)}
	case limits.Time > 0 && calls.InTurn(history, t.begin, now) >= limits.Time:
		return Done{Reason: ReasonTime}
	case t.reached != "" && !limits.FinalAnswer:
		return Done{Reason: t.reached}
	}
	if compact, ok := policy.compact(history, t.reached == ""); ok {
		return compact
	}
	return Exchange{Final: t.reached != "", Limited: t.reached}
}

// reasonOf translates the finish of an answer into the reason of a turn.
func reasonOf(finish canister.Finish) Reason {
	switch finish {
	case canister.FinishLength:
		return ReasonLength
	case canister.FinishContentFilter:
		return ReasonContentFilter
	case canister.FinishRefusal:
		return ReasonRefusal
	case canister.FinishCancelled:
		return ReasonCancelled
	}
	return ReasonAnswered
}

// turnState is the state of the last turn of a history.
type turnState struct {
	begun       bool // there is a User canister
	begin       int  // its index, or -1
	exchanges   int
	invocations int
	usage       canister.Usage
	last        canister.Assistant // the latest message, if exchanges > 0
	answered    bool               // last calls no tool
	reached     Reason             // the limit that allows no further exchange
	final       Reason             // the limit that was reached before last, a final answer
	length      int                // of the history that was read
}

// readTurn reads the last turn of a history. Limits have their defaults.
func readTurn(history []canister.Canister, limits Limits) turnState {
	t := turnState{begin: -1}
	t.extend(history, limits)
	return t
}

// extend reads the canisters after those that were read before.
func (t *turnState) extend(history []canister.Canister, limits Limits) {
	for i := len(history) - 1; i >= t.length; i-- {
		if _, ok := history[i].(canister.User); ok {
			*t = turnState{begun: true, begin: i, length: i + 1}
			break
		}
	}
	unread := history[t.length:]
	if t.length = len(history); !t.begun {
		return
	}
	for _, c := range unread {
		switch c := c.(type) {
		case canister.Assistant:
			if limits.FinalAnswer {
				t.final = t.reached
			}
			t.last, t.answered = c, true
			t.exchanges++
			if c.Usage != nil {
				t.usage = t.usage.Add(*c.Usage)
			}
			t.reached = limits.reached(t.exchanges, t.usage)
		case canister.Invocation:
			t.answered = false
			t.invocations++
		case canister.Document: // a summary whose exchange counts too
			if spent := calls.SampledIn(c.Metadata); spent.Exchanges > 0 {
				t.exchanges += spent.Exchanges
				t.usage = t.usage.Add(spent.Usage)
				t.reached = cmp.Or(t.reached, limits.reached(0, t.usage))
			}
		case canister.Result, canister.Wait:
			if spent := calls.SampledIn(c.Header().Metadata); spent.Exchanges > 0 {
				t.exchanges += spent.Exchanges
				t.usage = t.usage.Add(spent.Usage)
				t.reached = limits.reached(t.exchanges, t.usage)
			}
		case canister.User, canister.Supervisor, canister.Intent, canister.Answer: // they cost nothing
		}
	}
}

// turn summarises the state for a [TurnCompleted].
func (t *turnState) turn(reason Reason) Turn {
	return Turn{
		Reason:      reason,
		Answer:      t.last,
		Exchanges:   t.exchanges,
		Invocations: t.invocations,
		Usage:       t.usage,
	}
}
