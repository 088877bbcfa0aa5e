// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/waitrules"
	"github.com/consort-go/consort/invoker"
)

// State is the state in the history of an invocation without a result.
type State struct {
	Attempts int64
	Intent   canister.Intent // of the latest attempt that may have been made
	Doubt    bool            // the outcome of the intent is unknown
	Wait     canister.Wait   // the last wait after the intent; without one, ID is empty
	Answer   canister.Answer // to the wait; without one in time, ID is empty
	Asked    []Asked         // questions to a person in earlier attempts
	Made     []Made          // the calls that its tool has made, after the intent
}

// Made is a call that the tool of an invocation has made.
type Made struct {
	canister.Invocation
	Result canister.Result // without an ID if it is missing
}

// Asked is a tool's question to a person, and the answer, which may be missing.
type Asked struct {
	canister.Wait
	Answer canister.Answer
}

// Tail returns the canisters after the last message of the model. All open invocations
// and waits are there.
func Tail(history []canister.Canister) []canister.Canister {
	for i := len(history); i > 0; i-- {
		if history[i-1].Kind() == canister.KindAssistant {
			return history[i:]
		}
	}
	return history
}

// Read reads the state of open invocations from the history. An intent that is
// known not to have become a call only counts as an attempt. Of several waits of an
// invocation the last one counts, or the last one for the identity if there is one: an
// answer for an identity is not used up if the work is done for another identity in
// between.
func Read(history []canister.Canister, unmade map[string]bool, identity string) map[string]*State {
	var all map[string]*State
	of := func(invocation string) *State {
		if all == nil { // of most histories, none has a state
			all = map[string]*State{}
		}
		if all[invocation] == nil {
			all[invocation] = &State{}
		}
		return all[invocation]
	}
	waits := map[string]canister.Wait{}
	made := map[string]int{} // the place among the calls of the parent, by invocation
	for _, c := range Tail(history) {
		switch c := c.(type) {
		case canister.Invocation:
			if c.Parent != "" {
				s := of(c.Parent)
				made[c.ID] = len(s.Made)
				s.Made = append(s.Made, Made{Invocation: c})
				s.Doubt = false
			}
		case canister.Result:
			if place, ok := made[c.Invocation]; ok {
				of(c.Parent).Made[place].Result = c
			}
		case canister.Intent:
			s := of(c.Invocation)
			s.Attempts = c.Attempt
			if !unmade[c.ID] {
				s.Intent, s.Doubt = c, true
				s.Wait, s.Answer = canister.Wait{}, canister.Answer{}
			}
		case canister.Wait:
			waits[c.ID] = c
			s := of(c.Invocation)
			fact := c.For == canister.WaitOutcome || s.Wait.For == canister.WaitOutcome // for every identity
			if s.Doubt = false; fact || c.Identity == identity || s.Wait.ID == "" || s.Wait.Identity != identity {
				s.Wait, s.Answer = c, canister.Answer{}
			}
			if c.For == canister.WaitElicitation {
				s.Asked = append(s.Asked, Asked{Wait: c})
			}
		case canister.Answer:
			if wait, ok := waits[c.Wait]; ok && waitrules.Holds(wait, c) {
				of(wait.Invocation).answered(wait, c)
			}
		default: // the others say nothing about open invocations
		}
	}
	return all
}

func (s *State) answered(wait canister.Wait, answer canister.Answer) {
	if s.Wait.ID == wait.ID {
		s.Answer = answer
	}
	for i := range s.Asked {
		if s.Asked[i].ID == wait.ID {
			s.Asked[i].Answer = answer
		}
	}
}

// Elapsed returns the time from since to now, less the time that the conversation waited for
// answers, according to the waits of its history.
func Elapsed(history []canister.Canister, since, now time.Time) time.Duration {
	return max(0, now.Sub(since)-waited(history, since, now))
}

// InTurn returns how long the turn that begins at an index of a history has taken, without waits. The
// sender of its message may have set a time before the end of the previous turn, which counts then.
// If that has not come yet, the clock of the machine that wrote it is ahead: the turn began with the
// first canister after its message, or begins now.
func InTurn(history []canister.Canister, begin int, now time.Time) time.Duration {
	start := history[begin].Header().Time
	if begin > 0 {
		before := history[begin-1].Header().Time
		if before.After(now) {
			before = now
			if begin+1 < len(history) {
				before = earlier(history[begin+1].Header().Time, now)
			}
		}
		if before.After(start) {
			start = before
		}
	}
	return Elapsed(history[begin:], start, now)
}

// waited returns how long a conversation waited for answers between since and now.
// Overlapping times count once.
func waited(history []canister.Canister, since, now time.Time) time.Duration {
	ends := map[string]time.Time{} // by the wait or the invocation
	for _, c := range history {
		switch c := c.(type) {
		case canister.Answer:
			ends[c.Wait] = c.Time
		case canister.Result:
			ends[c.Invocation] = c.Time
		}
	}
	var sum time.Duration
	covered := since
	for _, c := range history {
		wait, ok := c.(canister.Wait)
		if !ok {
			continue
		}
		end := earlier(wait.Deadline, now)
		for _, id := range []string{wait.ID, wait.Invocation} {
			if ended, ok := ends[id]; ok {
				end = earlier(end, ended)
			}
		}
		begin := wait.Time
		if begin.Before(covered) {
			begin = covered
		}
		if end.After(begin) {
			sum += end.Sub(begin)
			covered = end
		}
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Unknown returns the failure for a call in doubt.
func (s *State) Unknown(more string) *invoker.Failure {
	message := fmt.Sprintf("The call was started at %s, and its outcome was lost. It may or may not have taken effect: find out before you call it again.",
		s.Intent.Time.UTC().Format(time.RFC3339))
	if more != "" {
		message += " " + more
	}
	return invoker.Failf(invoker.OutcomeUnknown, "%s", message)
}

// Barred returns the failure for a call that is not made now but may have been made
// before. The code applies if the outcome of that is known.
func (s *State) Barred(code invoker.Code, why string) *invoker.Failure {
	switch {
	case len(s.Made) > 0:
		return invoker.Failf(code, "The call was stopped: %s. It had called tools %d times; those calls are not undone.", why, len(s.Made))
	case s.InDoubt():
		return s.Unknown("It was not repeated: " + why + ".")
	case s.Wait.For == canister.WaitElicitation:
		return invoker.Failf(code, "The call was stopped, to be repeated with the answer of a person, but it was not repeated: %s.", why)
	}
	return invoker.Failf(code, "The call was not started: %s.", why)
}

// InDoubt reports whether the outcome of an earlier attempt is unknown, also while a person is
// asked for it.
func (s *State) InDoubt() bool { return s.Doubt || s.Wait.For == canister.WaitOutcome }

// Because joins a statement and its reason, which may be empty.
func Because(statement, reason string) string {
	if reason == "" {
		return statement + "."
	}
	return statement + ": " + reason
}

// Waits returns the open waits of a conversation; see package waits. An empty ID
// includes the waits of every conversation.
func Waits(conversation string, history []canister.Canister, now time.Time) []canister.Wait {
	tail := Tail(history)
	if !slices.ContainsFunc(tail, func(c canister.Canister) bool { return c.Kind() == canister.KindWait }) {
		return nil
	}
	open := map[string]bool{"": true}
	for _, invocation := range canister.Pending(history) {
		open[invocation.ID] = true
	}
	answered := map[string]bool{}
	for _, c := range tail {
		if answer, ok := c.(canister.Answer); ok {
			answered[answer.Wait] = true
		}
	}
	var waits []canister.Wait
	for _, c := range tail {
		wait, ok := c.(canister.Wait)
		if ok && !answered[wait.ID] && open[wait.Invocation] && now.Before(wait.Deadline) && !Inherited(wait, conversation) {
			waits = append(waits, wait)
		}
	}
	return waits
}

// WaitIDs returns the IDs of waits.
func WaitIDs(waits []canister.Wait) (ids []string) {
	for _, wait := range waits {
		ids = append(ids, wait.ID)
	}
	return ids
}

// FirstDeadline returns the earliest deadline of waits, or zero without waits.
func FirstDeadline(waits []canister.Wait) (first time.Time) {
	for _, wait := range waits {
		if first.IsZero() || wait.Deadline.Before(first) {
			first = wait.Deadline
		}
	}
	return first
}

// Named returns the only person who could answer a wait, by its ID, or "" if anyone could.
func Named(history []canister.Canister, wait string) string {
	for _, c := range Tail(history) {
		if c, ok := c.(canister.Wait); ok && c.ID == wait {
			return c.Who
		}
	}
	return ""
}

// Inherited reports whether a wait belongs to another conversation.
func Inherited(wait canister.Wait, conversation string) bool {
	return conversation != "" && wait.Conversation != "" && wait.Conversation != conversation && wait.For != canister.WaitTimer
}

// Open returns the invocations that lack a result and do not wait, and the open
// waits, for the person with an identity if it is not empty. An invocation whose tool has
// made calls is not open before they have results. While the conversation as a whole
// waits, no invocation is open.
func Open(conversation, identity string, history []canister.Canister, now time.Time) ([]canister.Invocation, []canister.Wait) {
	waits := Waits(conversation, history, now)
	if len(waits) > 0 && identity != "" {
		known := Read(history, nil, identity)
		waits = slices.DeleteFunc(waits, func(w canister.Wait) bool {
			s := known[w.Invocation]
			return w.For != canister.WaitOutcome && s.Wait.ID != w.ID && s.Wait.Identity == identity && s.Answer.ID != ""
		})
	}
	waiting := map[string]bool{}
	for _, wait := range waits {
		waiting[wait.Invocation] = true
	}
	if waiting[""] {
		return nil, waits
	}
	pending := canister.Pending(history)
	for _, i := range pending {
		if i.Parent != "" {
			waiting[i.Parent] = true
		}
	}
	return slices.DeleteFunc(pending, func(i canister.Invocation) bool { return waiting[i.ID] }), waits
}

// Unwaiting returns the invocations without a result that do not wait for an answer, and have
// made no call that does. The calls that an invocation has made come before it.
func Unwaiting(conversation, identity string, history []canister.Canister, now time.Time) []canister.Invocation {
	open, waits := Open(conversation, identity, history, now)
	if len(open) == 0 {
		return nil // the conversation as a whole may wait
	}
	waiting := map[string]bool{}
	for _, wait := range waits {
		waiting[wait.Invocation] = true
	}
	pending := canister.Pending(history)
	for _, i := range pending {
		if waiting[i.ID] && i.Parent != "" {
			waiting[i.Parent] = true
		}
	}
	return slices.DeleteFunc(pending, func(i canister.Invocation) bool { return waiting[i.ID] })
}

// UsedUp reports whether a call other than the one of an invocation was made with the answer to
// a wait.
func UsedUp(history []canister.Canister, wait canister.Wait, invocation string) bool {
	return slices.ContainsFunc(Tail(history), func(c canister.Canister) bool {
		intent, ok := c.(canister.Intent)
		return ok && intent.Wait == wait.ID && intent.Invocation != invocation
	})
}
