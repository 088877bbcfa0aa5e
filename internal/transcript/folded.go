// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/folding"
)

// Tally counts the calls of a program that have results.
func (e Entry) Tally() *folding.Tally {
	t := &folding.Tally{}
	for _, inner := range e.Calls {
		if result, ok := inner.Result.Canister.(canister.Result); ok {
			t.Add(inner.Canister.(canister.Invocation).Name, result.Failed())
		}
	}
	return t
}

// Folded returns the outcome of a search, or the calls of a program, in one line that is safe to print on a
// terminal. It is "" for all other calls: programs that made no calls, and calls without a result.
func (e Entry) Folded() string {
	result, ok := e.Result.Canister.(canister.Result)
	if !ok {
		return ""
	}
	name := e.Canister.(canister.Invocation).Name
	if found, ok := folding.Found(name, result); ok {
		return found
	}
	if tally := e.Tally().String(); tally != "" {
		return folding.Outcome(tally, result)
	}
	return ""
}

// of returns the call with an ID among calls and the calls that they made.
func (s *calls) of(invocation string) *Entry {
	return entryOf(s.entries, invocation)
}

func entryOf(entries []Entry, invocation string) *Entry {
	for i := range slices.Backward(entries) {
		if entries[i].Header().ID == invocation {
			return &entries[i]
		}
		if inner := entryOf(entries[i].Calls, invocation); inner != nil {
			return inner
		}
	}
	return nil
}
