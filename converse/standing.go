// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"time"

	"github.com/consort-go/consort/canister"
)

// callState is the state in the history of an invocation without a result.
type callState struct {
	attempts int64
	intent   canister.Intent // of the latest attempt that may have been made
	doubt    bool            // the outcome of the intent is unknown
	wait     canister.Wait   // the last wait after the intent; without one, ID is empty
	answer   canister.Answer // to the wait; without one in time, ID is empty
	asked    []question      // questions to a person in earlier attempts
}

// question is a tool's question to a person, and the answer, which may be missing.
type question struct {
	canister.Wait
	answer canister.Answer
}

// tail returns the canisters after the last message of the model. All open invocations
// and waits are there.
func tail(history []canister.Canister) []canister.Canister {
	for i := len(history); i > 0; i-- {
		if history[i-1].Kind() == canister.KindAssistant {
			return history[i:]
		}
	}
	return history
}

// callStates reads the state of open invocations from the history. An intent that is
// known not to have become a call only counts as an attempt. Of several waits of an
// invocation the last one counts, or the last one for the identity if there is one: an
// answer for an identity is not used up if the work is done for another identity in
// between.
func callStates(history []canister.Canister, unmade map[string]bool, identity string) map[string]*callState {
	all := map[string]*callState{}
	of := func(invocation string) *callState {
		if all[invocation] == nil {
			all[invocation] = &callState{}
		}
		return all[invocation]
	}
	waits := map[string]canister.Wait{}
	for _, c := range tail(history) {
		switch c := c.(type) {
		case canister.Intent:
			s := of(c.Invocation)
			s.attempts = c.Attempt
			if !unmade[c.ID] {
				s.intent, s.doubt = c, true
				s.wait, s.answer = canister.Wait{}, canister.Answer{}
			}
		case canister.Wait:
			waits[c.ID] = c
			s := of(c.Invocation)
			fact := c.For == canister.WaitOutcome || s.wait.For == canister.WaitOutcome // for every identity
			if s.doubt = false; fact || c.Identity == identity || s.wait.ID == "" || s.wait.Identity != identity {
				s.wait, s.answer = c, canister.Answer{}
			}
			if c.For == canister.WaitElicitation {
				s.asked = append(s.asked, question{Wait: c})
			}
		case canister.Answer:
			if wait, ok := waits[c.Wait]; ok && holds(wait, c) {
				of(wait.Invocation).answered(wait, c)
			}
		}
	}
	return all
}

// holds reports whether an answer came in time, from a person who may give it.
func holds(wait canister.Wait, answer canister.Answer) bool {
	return answer.Time.Before(wait.Deadline) && (wait.Who == "" || wait.Who == answer.By)
}

func (s *callState) answered(wait canister.Wait, answer canister.Answer) {
	if s.wait.ID == wait.ID {
		s.answer = answer
	}
	for i := range s.asked {
		if s.asked[i].ID == wait.ID {
			s.asked[i].answer = answer
		}
	}
}

// waited returns how long a conversation waited for answers between since and now,
// according to the waits of its history. Overlapping times count once.
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
