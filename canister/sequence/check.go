// SPDX-License-Identifier: Apache-2.0

// Package sequence checks and repairs the order of canisters in a history.
package sequence

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
)

// Rule names a rule that a valid history follows.
type Rule string

// The rules, each with the fault that it reports.
const (
	// RuleValue: the canister is nil, or not one of the kinds by value.
	RuleValue Rule = "value"
	// RuleMissingID: the canister has no ID.
	RuleMissingID Rule = "missing_id"
	// RuleDuplicateID: an earlier canister has the same ID.
	RuleDuplicateID Rule = "duplicate_id"
	// RuleCallID: the invocation has no CallID, or the same one as another invocation
	// of its message and its parent.
	RuleCallID Rule = "call_id"
	// RuleMessage: Message of the invocation does not name an earlier Assistant.
	RuleMessage Rule = "message"
	// RulePlace: an invocation of the model does not directly follow its Assistant and the
	// other invocations of that message; or a result, intent, wait, or invocation with a
	// Parent does not directly follow those.
	RulePlace Rule = "place"
	// RuleOrphan: the result, intent or wait names no earlier invocation, or the
	// answer names no earlier wait.
	RuleOrphan Rule = "orphan"
	// RuleRepeated: the result, intent or wait names an invocation that already has a
	// result, or the answer names a wait that already has an answer.
	RuleRepeated Rule = "repeated"
	// RuleUnanswered: the invocation has no result, and the conversation has
	// continued without it.
	RuleUnanswered Rule = "unanswered"
	// RuleParent: Parent of the invocation is not an earlier invocation of the same
	// message, made by the model and without a result; or the Parent of a result
	// differs from its invocation's, or it comes before the result of a call that its
	// invocation made.
	RuleParent Rule = "parent"
	// RuleOpen: the invocation has no result yet, and only results, intents, waits
	// and answers follow it. If all problems of a history are of this rule, the
	// history was interrupted while calls were running; see [canister.Pending].
	RuleOpen Rule = "open"
)

// Problem is one violation of a rule in a history.
type Problem struct {
	Index int    // index of the canister in the history
	ID    string // ID of the canister; may be empty
	Rule  Rule
	Text  string // the problem, in a sentence for people
}

// String returns the position, the rule and the text.
func (p Problem) String() string {
	return fmt.Sprintf("canister %d (%s): %s: %s", p.Index, quoted(p.ID), p.Rule, p.Text)
}

// Check returns the problems of history in the order of the history, or nil if it
// follows all rules. It ignores times and the content of canisters, and does not
// change the history.
func Check(history []canister.Canister) []Problem {
	c := checker{
		ids:        make(map[string]bool, len(history)),
		assistants: map[string]bool{},
		calls:      map[string]*call{},
		waits:      map[string]bool{},
	}
	for i, one := range history {
		c.index = i
		c.look(one)
	}
	c.unanswered()
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Index, b.Index) })
	return c.problems
}

// checker walks a history once.
type checker struct {
	problems   []Problem
	index      int
	ids        map[string]bool  // IDs before index
	assistants map[string]bool  // IDs of Assistants before index
	calls      map[string]*call // invocations before index, by ID
	order      []*call          // the same invocations, in order
	waits      map[string]bool  // waits before index; true if answered
	block      *block           // the block that the canister at index belongs to; may be nil
}

// block is an Assistant with the invocations and results that follow it.
type block struct {
	message string // the ID of the Assistant
	callIDs map[string]bool
	closed  bool // a canister other than an invocation has followed
}

// call is an invocation.
type call struct {
	index    int
	id       string
	block    *block // the block that the invocation is correctly placed in, or nil
	answered bool
	parent   *call           // the invocation that made it, or nil
	inner    map[string]bool // the CallIDs of the invocations that it made
	open     int             // how many of those have no result
}

func (c *checker) broken(id string, rule Rule, format string, args ...any) {
	c.problems = append(c.problems, Problem{c.index, id, rule, fmt.Sprintf(format, args...)})
}

func (c *checker) look(one canister.Canister) {
	switch held := one.(type) {
	case canister.User, canister.Supervisor, canister.Document:
		c.block = nil
	case canister.Assistant:
		c.block = &block{message: held.ID, callIDs: map[string]bool{}}
		c.assistants[held.ID] = true
	case canister.Invocation:
		c.invocation(held)
	case canister.Result:
		c.result(held)
	case canister.Intent:
		c.about(held.ID, held.Invocation)
		c.close()
	case canister.Wait:
		c.close()
		c.waits[held.ID] = false
		if held.Invocation != "" {
			c.about(held.ID, held.Invocation)
		}
	case canister.Answer:
		c.answer(held)
		c.close()
	default:
		c.broken("", RuleValue, "%T is not one of the kinds, held by value", held)
		return
	}
	id := one.Header().ID
	switch {
	case id == "":
		c.broken(id, RuleMissingID, "the canister has no ID")
	case c.ids[id]:
		c.broken(id, RuleDuplicateID, "an earlier canister has the same ID")
	}
	c.ids[id] = true
}

// result checks the result of an invocation.
func (c *checker) result(r canister.Result) {
	asked := c.about(r.ID, r.Invocation)
	if asked == nil {
		return
	}
	parent := ""
	if asked.parent != nil {
		parent = asked.parent.id
		asked.parent.open--
	}
	if r.Parent != parent {
		c.broken(r.ID, RuleParent, "its parent is %s, and that of its invocation is %s", quoted(r.Parent), quoted(parent))
	}
	if asked.open > 0 {
		c.broken(r.ID, RuleParent, "%d of the calls that its invocation made have no result before it", asked.open)
	}
	asked.answered = true
}

// within checks an invocation that another one has made.
func (c *checker) within(this *call, v canister.Invocation) {
	parent := c.calls[v.Parent]
	switch {
	case parent == nil || parent.block == nil || parent.block != c.block || parent.parent != nil || v.Message != c.block.message:
		c.broken(v.ID, RuleParent, "its parent %s is not an invocation that the model made in the same message before it", quoted(v.Parent))
		return
	case parent.answered:
		c.broken(v.ID, RuleParent, "its parent %s already has a result", quoted(v.Parent))
		return
	case v.CallID == "":
		c.broken(v.ID, RuleCallID, "it has no CallID")
	case parent.inner[v.CallID]:
		c.broken(v.ID, RuleCallID, "another invocation of its parent has the same CallID %s", quoted(v.CallID))
	}
	if parent.inner == nil {
		parent.inner = map[string]bool{}
	}
	parent.inner[v.CallID] = true
	parent.open++
	this.block, this.parent = c.block, parent
	c.close()
}

func (c *checker) invocation(v canister.Invocation) {
	this := &call{index: c.index, id: v.ID}
	c.calls[v.ID] = this
	c.order = append(c.order, this)
	if v.Parent != "" {
		c.within(this, v)
		return
	}
	switch {
	case v.Message == "" || !c.assistants[v.Message]:
		c.broken(v.ID, RuleMessage, "its message %s is not an Assistant in the history before it", quoted(v.Message))
		return
	case c.block == nil || c.block.message != v.Message || c.block.closed:
		c.broken(v.ID, RulePlace, "it does not directly follow its message %s or another invocation of that message", quoted(v.Message))
		return
	case v.CallID == "":
		c.broken(v.ID, RuleCallID, "it has no CallID")
	case c.block.callIDs[v.CallID]:
		c.broken(v.ID, RuleCallID, "another invocation of the message has the same CallID %s", quoted(v.CallID))
	}
	c.block.callIDs[v.CallID] = true
	this.block = c.block
}

// about checks a canister that belongs to an invocation, and returns that
// invocation. It returns nil if the invocation does not exist or has a result
// already.
func (c *checker) about(id, invocation string) *call {
	asked := c.calls[invocation]
	switch {
	case asked == nil || invocation == "":
		c.broken(id, RuleOrphan, "it belongs to the invocation %s, which is not in the history before it", quoted(invocation))
		return nil
	case asked.answered:
		c.broken(id, RuleRepeated, "the invocation %s already has a result", quoted(invocation))
		return nil
	case asked.block == nil || asked.block != c.block:
		c.broken(id, RulePlace, "it does not directly follow the invocations of the message that asked for it")
	default:
		c.close()
	}
	return asked
}

// close makes further invocations in the block an error.
func (c *checker) close() {
	if c.block != nil {
		c.block.closed = true
	}
}

func (c *checker) answer(a canister.Answer) {
	answered, known := c.waits[a.Wait]
	switch {
	case !known || a.Wait == "":
		c.broken(a.ID, RuleOrphan, "it answers the wait %s, which is not in the history before it", quoted(a.Wait))
	case answered:
		c.broken(a.ID, RuleRepeated, "the wait %s already has an answer", quoted(a.Wait))
	default:
		c.waits[a.Wait] = true
	}
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
			c.broken(asked.id, RuleUnanswered, "it has no result, but the conversation continued")
		}
	}
}

// quoted quotes a name for a sentence and limits its length.
func quoted(name string) string { return fmt.Sprintf("%q", textcut.Bytes(name, 60)) }
