// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"iter"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
)

// Entry is one thing to read in a conversation: a message, a call with its result, or a
// note of the runtime that belongs to no call.
type Entry struct {
	Numbered            // the message, the note, or the invocation of the call
	Notes    []Numbered // of a call: its intents, waits and answers, in the order of the log
	Calls    []Entry    // of a call: the calls that its tool made, in their order
	Result   Numbered   // of a call; the Canister is nil before the result
}

// Entries groups the canisters of a conversation. It yields the calls of a message when the
// next message begins, ordered as the model asked for them. The calls that a program made are
// within the call of the program. A result or a note
// that belongs to none of these calls is an entry of its own. An error ends the sequence.
func Entries(canisters iter.Seq2[Numbered, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var latest calls
		for c, err := range canisters {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if latest.add(c) {
				continue
			}
			var ready []Entry
			if canister.Message(c.Canister) {
				ready = latest.take()
			}
			for _, e := range append(ready, Entry{Numbered: c}) {
				if !yield(e, nil) {
					return
				}
			}
		}
		for _, e := range latest.take() {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// calls are the calls of the latest message.
type calls struct {
	entries []Entry
	waits   map[string]string // the invocations of waits, by the IDs of the waits
}

// add adds a canister to the calls, and reports whether it belongs to them.
func (s *calls) add(n Numbered) bool {
	switch c := n.Canister.(type) {
	case canister.Invocation:
		if program := s.of(c.Parent); c.Parent != "" && program != nil {
			program.Calls = append(program.Calls, Entry{Numbered: n})
		} else {
			s.entries = append(s.entries, Entry{Numbered: n})
		}
		return true
	case canister.Intent:
		return s.note(c.Invocation, n)
	case canister.Wait:
		if s.waits == nil {
			s.waits = map[string]string{}
		}
		s.waits[c.ID] = c.Invocation
		return s.note(c.Invocation, n)
	case canister.Answer:
		return s.note(s.waits[c.Wait], n)
	case canister.Result:
		if e := s.of(c.Invocation); e != nil && e.Result.Canister == nil {
			e.Result = n
			return true
		}
		return false
	default:
		return false
	}
}

func (s *calls) note(invocation string, n Numbered) bool {
	e := s.of(invocation)
	if e != nil {
		e.Notes = append(e.Notes, n)
	}
	return e != nil
}

// take returns the calls and forgets them.
func (s *calls) take() []Entry {
	entries := s.entries
	*s = calls{}
	return entries
}

// Took returns how long the last attempt of a call took, and whether that is known.
func (e Entry) Took() (time.Duration, bool) {
	if e.Result.Canister == nil || e.Result.Header().Time.IsZero() {
		return 0, false
	}
	for i := len(e.Notes) - 1; i >= 0; i-- {
		if began := e.Notes[i].Header().Time; e.Notes[i].Kind() == canister.KindIntent && !began.IsZero() {
			took := e.Result.Header().Time.Sub(began)
			return took, took >= 0
		}
	}
	return 0, false
}

// Changed returns the arguments of the last attempt of a call if they differ from the ones
// that the model wrote, and otherwise "".
func (e Entry) Changed() string {
	changed := ""
	for _, n := range e.Notes {
		if intent, ok := n.Canister.(canister.Intent); ok {
			changed = intent.Arguments
		}
	}
	return changed
}

// Decisions returns what people decided about a call, such as "allowed by ann", and the open waits
// of the call, each in a line that is safe to print on a terminal.
func (e Entry) Decisions(zone *time.Location) []string {
	var decisions []string
	waits := map[string]canister.Wait{}
	approved := false
	for _, n := range e.Notes {
		switch c := n.Canister.(type) {
		case canister.Wait:
			waits[c.ID] = c
		case canister.Intent:
			approved = approved || c.Wait == "" && !c.Approved.IsZero()
		case canister.Answer:
			decisions = append(decisions, decision(waits[c.Wait].For, c))
			delete(waits, c.Wait)
		}
	}
	if approved && len(decisions) == 0 {
		decisions = append(decisions, "approved")
	}
	for _, n := range e.Notes {
		if wait, open := waits[n.Header().ID]; open && e.Result.Canister == nil {
			decisions = append(decisions, "waits for "+display.Line(string(wait.For))+" until "+Moment(wait.Deadline, zone))
		}
	}
	return decisions
}

// verdicts are the words for the answers to waits. Other verdicts stand for themselves.
var verdicts = map[canister.WaitFor]map[canister.Verdict]string{
	canister.WaitApproval: {
		canister.VerdictAllow: "allowed", canister.VerdictDeny: "denied", canister.VerdictChange: "allowed with other arguments",
	},
	canister.WaitOutcome: {
		canister.VerdictAllow: "repetition allowed", canister.VerdictDone: "outcome reported", canister.VerdictUnknown: "outcome left unknown",
	},
	canister.WaitElicitation: {
		canister.VerdictAccept: "question answered", canister.VerdictDecline: "question declined", canister.VerdictCancel: "question dismissed",
	},
	canister.WaitTimer: {canister.VerdictCancel: "pause ended"},
}

func decision(of canister.WaitFor, answer canister.Answer) string {
	text := verdicts[of][answer.Verdict]
	if text == "" {
		text = string(answer.Verdict)
	}
	if answer.By != "" {
		text += " by " + answer.By
	}
	if answer.Reason != "" {
		text += ": " + answer.Reason
	}
	return strings.TrimSpace(display.Line(text))
}
