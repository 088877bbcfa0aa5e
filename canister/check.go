// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule names one rule that a history keeps.
type Rule string

// The rules, and what it means that one is broken.
const (
	// RuleValue: the canister is nil, or not one of the six kinds by value.
	RuleValue Rule = "value"
	// RuleMissingID: the canister has no identity.
	RuleMissingID Rule = "missing_id"
	// RuleDuplicateID: a canister before it has the same identity.
	RuleDuplicateID Rule = "duplicate_id"
	// RuleCallID: the invocation has no CallID, or that of another invocation
	// of its message.
	RuleCallID Rule = "call_id"
	// RuleMessage: the Message of the invocation names no Assistant before it.
	RuleMessage Rule = "message"
	// RulePlace: the invocation is not directly behind its Assistant and the
	// other invocations of it, or the result is not directly behind those.
	RulePlace Rule = "place"
	// RuleOrder: the result stands behind that of a later invocation.
	RuleOrder Rule = "order"
	// RuleOrphan: the result names no invocation before it.
	RuleOrphan Rule = "orphan"
	// RuleRepeated: the invocation of the result has a result already.
	RuleRepeated Rule = "repeated"
	// RuleUnanswered: the invocation has no result, and the conversation has
	// gone on without.
	RuleUnanswered Rule = "unanswered"
	// RuleOpen: the invocation has no result yet, and nothing but results of
	// its message follows. A history whose problems are all of this rule was
	// put down in the middle of its work; see [Pending].
	RuleOpen Rule = "open"
)

// Problem is one place where a history breaks a rule.
type Problem struct {
	Index int    // of the canister in the history
	ID    string // of the canister; may be empty
	Rule  Rule
	Text  string // what is wrong, in a sentence for people
}

// String returns the place, the rule and the text.
func (p Problem) String() string {
	return fmt.Sprintf("canister %d (%s): %s: %s", p.Index, clip(p.ID), p.Rule, p.Text)
}

// Check returns where history breaks the rules, in the order of the history,
// and nil if it keeps them all. Times do not matter, and neither does what the
// canisters say. It does not change the history.
func Check(history []Canister) []Problem {
	c := checker{
		ids:        make(map[string]bool, len(history)),
		assistants: map[string]bool{},
		calls:      map[string]*call{},
	}
	for i, canister := range history {
		c.index = i
		c.look(canister)
	}
	c.unanswered()
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Index, b.Index) })
	return c.problems
}

// Pending returns the invocations that still lack a result and at the end of
// the history, behind the last message, wait for it, in their order: nil if
// there are none. Its cost is that of the last message, not of the history. Of
// a history in which [Check] finds more than open invocations, it tells only
// what the end looks like.
func Pending(history []Canister) []Invocation {
	end := len(history)
	answered := map[string]bool{}
	for ; end > 0; end-- {
		result, ok := history[end-1].(Result)
		if !ok {
			break
		}
		answered[result.Invocation] = true
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
			pending = append(pending, call)
		}
	}
	return pending
}

func isInvocation(c Canister) bool {
	_, ok := c.(Invocation)
	return ok
}

// checker walks a history once.
type checker struct {
	problems   []Problem
	index      int
	ids        map[string]bool  // the identities before the index
	assistants map[string]bool  // those of Assistants
	calls      map[string]*call // the invocations before the index
	order      []*call          // the same, in their order
	block      *block           // what the canister at the index stands in; may be nil
}

// block is an Assistant with the invocations and results behind it.
type block struct {
	message string // the ID of the Assistant
	callIDs map[string]bool
	calls   int  // how many invocations
	results bool // whether a result has been seen
	last    int  // the number of the invocation that was answered last
}

// call is an invocation.
type call struct {
	index    int
	id       string
	block    *block // in which the invocation stands in its place, or nil
	number   int    // in the block
	answered bool
}

func (c *checker) broken(id string, rule Rule, format string, args ...any) {
	c.problems = append(c.problems, Problem{c.index, id, rule, fmt.Sprintf(format, args...)})
}

func (c *checker) look(canister Canister) {
	switch held := canister.(type) {
	case User, Supervisor, Document:
		c.block = nil
	case Assistant:
		c.block = &block{message: held.ID, callIDs: map[string]bool{}}
		c.assistants[held.ID] = true
	case Invocation:
		c.invocation(held)
	case Result:
		c.result(held)
	default:
		c.broken("", RuleValue, "%T is not one of the six kinds, held by value", held)
		return
	}
	id := canister.Header().ID
	switch {
	case id == "":
		c.broken(id, RuleMissingID, "the canister has no identity")
	case c.ids[id]:
		c.broken(id, RuleDuplicateID, "a canister before it has the same identity")
	}
	c.ids[id] = true
}

func (c *checker) invocation(v Invocation) {
	this := &call{index: c.index, id: v.ID}
	c.calls[v.ID] = this
	c.order = append(c.order, this)
	switch {
	case v.Message == "" || !c.assistants[v.Message]:
		c.broken(v.ID, RuleMessage, "no Assistant before it has the identity %s of its message", clip(v.Message))
		return
	case c.block == nil || c.block.message != v.Message || c.block.results:
		c.broken(v.ID, RulePlace, "it is not directly behind its message %s and the other invocations of that", clip(v.Message))
		return
	case v.CallID == "":
		c.broken(v.ID, RuleCallID, "it has no CallID")
	case c.block.callIDs[v.CallID]:
		c.broken(v.ID, RuleCallID, "another invocation of the message has the CallID %s too", clip(v.CallID))
	}
	c.block.callIDs[v.CallID] = true
	c.block.calls++
	this.block, this.number = c.block, c.block.calls
}

func (c *checker) result(r Result) {
	asked := c.calls[r.Invocation]
	switch {
	case asked == nil || r.Invocation == "":
		c.broken(r.ID, RuleOrphan, "no invocation before it has the identity %s that it answers", clip(r.Invocation))
		return
	case asked.answered:
		c.broken(r.ID, RuleRepeated, "the invocation %s has a result before this one", clip(r.Invocation))
		return
	}
	asked.answered = true
	switch {
	case asked.block == nil || asked.block != c.block:
		c.broken(r.ID, RulePlace, "it is not directly behind the invocations of the message that asked for it")
		return
	case asked.number < c.block.last:
		c.broken(r.ID, RuleOrder, "it stands behind the result of a later invocation")
	}
	c.block.results = true
	c.block.last = max(c.block.last, asked.number)
}

// unanswered reports the invocations without a result.
func (c *checker) unanswered() {
	for _, asked := range c.order {
		if asked.answered {
			continue
		}
		c.index = asked.index
		if asked.block != nil && asked.block == c.block {
			c.broken(asked.id, RuleOpen, "it has no result yet")
		} else {
			c.broken(asked.id, RuleUnanswered, "it has no result, and the conversation has gone on")
		}
	}
}
