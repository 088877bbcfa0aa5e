// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"slices"
	"time"
)

// Intent records that the call of an [Invocation] is about to be made. It is
// written before the call: if a process died and left an Intent without a result,
// the call may or may not have been made.
type Intent struct {
	Head
	// Invocation is the ID of the [Invocation].
	Invocation string
	// Attempt counts the calls of the invocation, from 1.
	Attempt int64
	// Key is the idempotency key of the call. It is the same for each attempt and
	// differs between conversations. It is recorded so that people can look a call up
	// at its server; the next attempt computes it again.
	Key string
	// Repeatable means that the tool is read-only or idempotent, so that the call can
	// be repeated with the same key.
	Repeatable bool
	// Wait is the ID of the [Wait] whose answer allowed the call, and which this call
	// uses up; empty if no one was asked.
	Wait string
	// Arguments is the JSON text of the arguments of the call, if they differ from
	// those of the invocation.
	Arguments string
	// Approved is the time until which the approval of the call, by a person or a
	// rule, is valid; zero if no approval was asked for. The next attempt uses the
	// same approval if it has the same Identity, Fingerprint and arguments.
	Approved time.Time
	// Identity stands for both the conversation and the identity that an approved
	// call is made for, without revealing them. Fingerprint stands for the definition
	// of its tool.
	Identity    string
	Fingerprint string
}

// Wait records that the conversation or one of its calls waits for something
// until a deadline. Its state is kept in the history alone, so that a wait can
// last for days.
type Wait struct {
	Head
	// For is the subject of the wait.
	For WaitFor
	// Invocation is the ID of the [Invocation] that waits; empty if the whole
	// conversation waits.
	Invocation string
	// Deadline is the time at which the wait ends without an answer.
	Deadline time.Time
	// Who names the person who may answer; if empty, anyone may.
	Who string
	// Conversation is the ID of the conversation. An answer is not valid in a fork of
	// it.
	Conversation string
	// Identity stands for the identity that the call is made for, without revealing
	// it. Fingerprint stands for the definition of the tool. An answer is only valid
	// for these.
	Identity    string
	Fingerprint string
	// Arguments is the JSON text of the arguments that the answer is about.
	Arguments string
	// Question is, for WaitElicitation, the question to the person.
	Question json.RawMessage
}

// WaitFor is the subject of a [Wait].
type WaitFor string

// The subjects of a wait.
const (
	WaitApproval    WaitFor = "approval"    // a person has to allow a call
	WaitElicitation WaitFor = "elicitation" // a tool asks a person
	WaitOutcome     WaitFor = "outcome"     // it is unknown whether a call was made
	WaitTimer       WaitFor = "timer"       // the deadline itself
)

// Answer ends a [Wait].
type Answer struct {
	Head
	// Wait is the ID of the [Wait].
	Wait string
	// Verdict is the decision.
	Verdict Verdict
	// By names the person or program that decided.
	By string
	// Reason is the reason for the decision, for the model and the audit. May be
	// empty.
	Reason string
	// Arguments is, for VerdictChange, the JSON object to call with, and for
	// VerdictAccept the object that the tool asked for.
	Arguments json.RawMessage
	// Content is, for VerdictDone, the result of the call.
	Content []Content
}

// Verdict is the decision of an [Answer].
type Verdict string

// The verdicts, and the waits that they answer.
const (
	VerdictAllow   Verdict = "allow"   // an approval: make the call. An outcome: repeat the call
	VerdictDeny    Verdict = "deny"    // an approval: do not make the call
	VerdictChange  Verdict = "change"  // an approval: make the call with other arguments
	VerdictDone    Verdict = "done"    // an outcome: the call was made, with this content as its result
	VerdictUnknown Verdict = "unknown" // an outcome: it will never be known
	VerdictAccept  Verdict = "accept"  // an elicitation: the answer
	VerdictDecline Verdict = "decline" // an elicitation: the person declined
	VerdictCancel  Verdict = "cancel"  // an elicitation: the person gave no answer. A timer: stop waiting
)

// Answers returns the verdicts that answer a wait for f, or nil if f is not one
// of the constants above.
func (f WaitFor) Answers() []Verdict {
	switch f {
	case WaitApproval:
		return []Verdict{VerdictAllow, VerdictDeny, VerdictChange}
	case WaitOutcome:
		return []Verdict{VerdictAllow, VerdictDone, VerdictUnknown}
	case WaitElicitation:
		return []Verdict{VerdictAccept, VerdictDecline, VerdictCancel}
	case WaitTimer:
		return []Verdict{VerdictCancel}
	}
	return nil
}

// Kind returns [KindIntent].
func (Intent) Kind() Kind { return KindIntent }

// Kind returns [KindWait].
func (Wait) Kind() Kind { return KindWait }

// Kind returns [KindAnswer].
func (Answer) Kind() Kind { return KindAnswer }

func (c Intent) withHead(h Head) Canister { c.Head = h; return c }
func (c Wait) withHead(h Head) Canister   { c.Head = h; return c }
func (c Answer) withHead(h Head) Canister { c.Head = h; return c }

// Message reports whether c is a message, which the model sees, rather than an
// [Intent], a [Wait], an [Answer], or an [Invocation] or [Result] with a Parent.
func Message(c Canister) bool {
	switch c := c.(type) {
	case Invocation:
		return c.Parent == ""
	case Result:
		return c.Parent == ""
	case Intent, Wait, Answer:
		return false
	default:
		return true
	}
}

// Messages returns the part of a history that the model sees: the messages, with
// the results of each Assistant in the order of its invocations. In a log they
// can be in a different order. If nothing has to change, Messages returns history
// itself, and otherwise a new slice.
func Messages(history []Canister) []Canister {
	messages := history
	if slices.ContainsFunc(history, func(c Canister) bool { return !Message(c) }) {
		messages = slices.DeleteFunc(slices.Clone(history), func(c Canister) bool { return !Message(c) })
	}
	for i := 0; i < len(messages); i++ {
		if !isInvocation(messages[i]) {
			continue
		}
		place := map[string]int{}
		for ; i < len(messages) && isInvocation(messages[i]); i++ {
			place[messages[i].Header().ID] = len(place)
		}
		end := i
		for end < len(messages) && messages[end].Kind() == KindResult {
			end++
		}
		order := func(a, b Canister) int { return place[a.(Result).Invocation] - place[b.(Result).Invocation] }
		if !slices.IsSortedFunc(messages[i:end], order) {
			if &messages[0] == &history[0] {
				messages = slices.Clone(history)
			}
			slices.SortStableFunc(messages[i:end], order)
		}
		i = end - 1
	}
	return messages
}

// Pending returns, in order, the invocations at the end of the history that have
// no result yet, or nil if there are none. The calls that an invocation has made come before
// it, so that results can be added in the order of the list. Its cost depends on the number of
// canisters from the last Assistant on, not on the length of the history. If
// the history breaks a rule, the result describes only its end.
func Pending(history []Canister) []Invocation {
	end := len(history)
	answered := map[string]bool{}
	within := map[string][]Invocation{} // by parent, the last first
	for ; end > 0; end-- {
		if result, ok := history[end-1].(Result); ok {
			answered[result.Invocation] = true
		} else if Message(history[end-1]) {
			break
		} else if inner, ok := history[end-1].(Invocation); ok && !answered[inner.ID] {
			within[inner.Parent] = append(within[inner.Parent], inner)
		}
	}
	start := end
	for start > 0 && isInvocation(history[start-1]) {
		start--
	}
	if start == 0 || start == end {
		return nil
	}
	message, ok := history[start-1].(Assistant)
	if !ok {
		return nil
	}
	var pending []Invocation
	for _, c := range history[start:end] {
		if call := c.(Invocation); call.Message == message.ID && !answered[call.ID] {
			for _, inner := range slices.Backward(within[call.ID]) {
				pending = append(pending, inner)
			}
			pending = append(pending, call)
		}
	}
	return pending
}

// isInvocation reports whether a canister is an invocation that a model made.
func isInvocation(c Canister) bool {
	call, ok := c.(Invocation)
	return ok && call.Parent == ""
}
