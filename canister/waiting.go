// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"slices"
	"time"
)

// Intent says that the call of an [Invocation] is about to be made. It is
// written before the call: where one is found without a result, after a process
// died, the call may have been made or not.
type Intent struct {
	Head
	// Invocation is the ID of the [Invocation].
	Invocation string
	// Attempt counts the calls of the invocation, from 1.
	Attempt int64
	// Key is what the call carries as its idempotency key: the same on each
	// attempt, and another one in each conversation. It is here for those who look a
	// call up at its server; the next attempt makes it anew.
	Key string
	// Repeatable says that the tool is read-only or idempotent, so that the call
	// can be made again with the same key.
	Repeatable bool
	// Wait is the ID of the [Wait] whose answer let the call be made, which is
	// used up by that; empty if nobody was asked.
	Wait string
	// Arguments are the JSON text that the call is made with, if it is another
	// than that of the invocation.
	Arguments string
	// Approved is until when the approval of the call holds, by somebody or a rule;
	// zero if nobody was asked. The next attempt is the same use of it, if that has
	// the same Identity, Fingerprint and arguments.
	Approved time.Time
	// Identity stands for the identity that an approved call is made for and for
	// the conversation, in a form that does not tell them; Fingerprint for the
	// definition of its tool.
	Identity    string
	Fingerprint string
}

// Wait says that something is waited for, until a deadline. Nothing of it is
// anywhere but in the history, so that it can last for days.
type Wait struct {
	Head
	// For says what is waited for.
	For WaitFor
	// Invocation is the ID of the [Invocation] that waits; empty if the whole
	// conversation does.
	Invocation string
	// Deadline is when the wait ends without an answer.
	Deadline time.Time
	// Who names the one who may answer; empty lets anybody.
	Who string
	// Conversation is the identity of the conversation: an answer does not hold
	// in another one that was forked from it.
	Conversation string
	// Identity stands for the identity that the call is made for, in a form that
	// does not tell it; Fingerprint for the definition of the tool. An answer
	// holds for these alone.
	Identity    string
	Fingerprint string
	// Arguments are the JSON text of the arguments that the answer is about.
	Arguments string
	// Question is, for WaitElicitation, what the person is asked.
	Question json.RawMessage
}

// WaitFor says what a [Wait] waits for.
type WaitFor string

// What is waited for.
const (
	WaitApproval    WaitFor = "approval"    // somebody has to allow a call
	WaitElicitation WaitFor = "elicitation" // a tool asks a person
	WaitOutcome     WaitFor = "outcome"     // whether a call was made, nobody knows
	WaitTimer       WaitFor = "timer"       // the deadline
)

// Answer ends a [Wait].
type Answer struct {
	Head
	// Wait is the ID of the [Wait].
	Wait string
	// Verdict is what was decided.
	Verdict Verdict
	// By names who decided.
	By string
	// Reason says why, for the model and the audit. May be empty.
	Reason string
	// Arguments are, for VerdictChange, the JSON object to call with, and for
	// VerdictAccept the object that the tool asked for.
	Arguments json.RawMessage
	// Content is, for VerdictDone, what came of the call.
	Content []Content
}

// Verdict is what an [Answer] decides.
type Verdict string

// The verdicts, and what they answer.
const (
	VerdictAllow   Verdict = "allow"   // an approval: make the call. An outcome: make it again
	VerdictDeny    Verdict = "deny"    // an approval: do not
	VerdictChange  Verdict = "change"  // an approval: make it with other arguments
	VerdictDone    Verdict = "done"    // an outcome: it was made, and the content is what came of it
	VerdictUnknown Verdict = "unknown" // an outcome: nobody will ever know
	VerdictAccept  Verdict = "accept"  // an elicitation: this is the answer
	VerdictDecline Verdict = "decline" // an elicitation: the person does not want to
	VerdictCancel  Verdict = "cancel"  // an elicitation: the person gave none. A timer: it need not be waited for
)

// Answers returns the verdicts that answer a wait for f, and nil if f is none of
// the package.
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

// Message reports whether c is a message, of one of the six kinds that a model
// is told, and not an [Intent], a [Wait] or an [Answer].
func Message(c Canister) bool {
	switch c.(type) {
	case Intent, Wait, Answer:
		return false
	}
	return true
}

// Messages returns what of a history a model is told: the messages, and the
// results of each message of the model in the order of its invocations, as they
// need not stand in a log. A history that is so already comes back as it is;
// otherwise the slice is a new one.
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
