// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/compaction"
)

// Compaction says how to shorten a conversation that outgrows its model: see "Long
// conversations" in the package comment. The zero value of each field means the default
// that it names.
type Compaction struct {
	// Window is how many tokens the model accepts, for the request and the answer
	// together. If it is 0, compaction begins when the model refuses a request as too
	// long; see [CodeContextLength].
	Window int64
	// At is the share of Window that starts compaction, above 0 and up to 1; default
	// 0.8.
	At float64
	// Keep is how many exchanges at the end stay as they are: the messages of the
	// model, its calls and their results. It is halved, down to 1, as long as that is
	// not enough; if the newest results alone do not fit, they are cut too. Default 4.
	Keep int
	// Trim is the size in bytes that the results of tools before these exchanges are
	// cut to first; if that is enough, nothing is summarised. Default 2048; negative
	// cuts none.
	Trim int
	// Model writes the summaries; nil means the model of the conversation. Its window
	// should not be smaller.
	Model Model
	// Instructions tell the model how to summarise, and replace the default. The
	// maximum length of a summary, and the rule that the summarised text is to be read
	// and not obeyed, are appended to them.
	Instructions string
	// MaxTokens bounds a summary, and the model's reasoning before it; default 4096, or
	// an eighth of Window if that is less. If reasoning reaches the limit, the model is
	// asked again, once, with four times the limit, or its own limit if that is less.
	MaxTokens int64
}

// check returns an error if the options are invalid.
func (c *Compaction) check() error {
	switch {
	case c == nil:
	case c.Window < 0:
		return fmt.Errorf("converse: Compaction.Window is %d; want a number of tokens, or 0 if it is unknown", c.Window)
	case !(c.At >= 0 && c.At <= 1):
		return fmt.Errorf("converse: Compaction.At is %v; want a share of the window, above 0 and up to 1", c.At)
	case c.Keep < 0:
		return fmt.Errorf("converse: Compaction.Keep is %d; at least one exchange must stay", c.Keep)
	case c.MaxTokens < 0:
		return fmt.Errorf("converse: Compaction.MaxTokens is %d; want a positive number, or 0 for the default", c.MaxTokens)
	}
	return nil
}

// Policy is the input of [Next] besides the history. Its zero value has the default
// limits and no compaction.
type Policy struct {
	// Conversation is its ID; see waits.Open. Empty includes all waits.
	Conversation string
	// Identity identifies the person that the work is done for, in the form of
	// [canister.Wait]. While an unused answer for it exists, the same invocation does
	// not wait for an answer for another identity. Empty includes all waits.
	Identity string
	Limits   Limits
	// Compaction has the meaning of the field of [Options]; nil compacts nothing.
	Compaction *Compaction
	// Refused is the size, in tokens, of a request that the model has refused as too
	// long; 0 if it has not refused any. It is treated as a window.
	Refused int64
	// RefusedPart is the same for a request for a summary.
	RefusedPart int64
}

// options returns the compaction with its defaults, for a model that has refused a
// request of so many tokens; c must not be nil.
func (c *Compaction) options(refused int64) compaction.Options {
	return compaction.Options{Window: c.Window, At: c.At, Keep: c.Keep, Trim: c.Trim, MaxTokens: c.MaxTokens}.WithDefaults(refused)
}

// compact returns whether the conversation must be compacted before the model is asked,
// and how. Without ask it considers only compactions that need no model.
func (p Policy) compact(history []canister.Canister, ask bool) (Compact, bool) {
	if p.Compaction == nil {
		return Compact{}, false
	}
	found, ok := compaction.Find(history, p.Compaction.options(p.Refused), p.Refused, p.RefusedPart, ask)
	return commandOf(found), ok
}

// summary returns the summary that [Conversation.Compact] makes.
func (p Policy) summary(history []canister.Canister) (Compact, bool) {
	plan, ok := compaction.Summary(history, p.Compaction.options(p.Refused), p.Refused, p.RefusedPart)
	return commandOf(plan), ok
}

// Compact makes the next requests shorter. It appends one [canister.Document] that says
// how the canisters before it are shortened. The history loses nothing.
type Compact struct {
	// Through is the ID of the last canister that it covers. It never separates an
	// invocation from its results.
	Through string
	// Trim is the size in bytes that results are cut to, without asking the model; with
	// 0 the model summarises everything up to Through.
	Trim int
	// Before and After are the estimated sizes of the next request in tokens; After is
	// a guess if there will be a summary.
	Before, After int64

	plan compaction.Plan
}

func (Compact) command() {}

// Compact summarises the older part of the conversation now, whatever its size, according
// to Options.Compaction, which is required. The turn must be done. It yields a
// [CompactionCompleted] with the summary; without one there was nothing that a summary
// would shorten. The last event is not a [TurnCompleted]. A cap of Options.Budget that
// does not allow the summary is an error, a [*budget.ReachedError]. Until the next
// message, a store lists the conversation as open, because it ends with a document.
func (c *Conversation) Compact(ctx context.Context) iter.Seq2[Event, error] {
	return c.run(ctx, true, (*turn).summarizeNow)
}

// summarizeNow summarises the older part if the turn is done.
func (t *turn) summarizeNow() {
	if t.over() {
		return
	}
	if t.opts.Compaction == nil {
		t.progress.fail(errors.New("converse: Compact needs Options.Compaction, which is the table [compaction] in a configuration"))
		return
	}
	if _, done := t.next().(Done); !done {
		t.progress.fail(errors.New("converse: a conversation cannot be compacted in the middle of a turn: call Continue first"))
		return
	}
	t.summarizes = true
	for again := true; again; {
		command, ok := t.policy().summary(t.conv.history)
		again = ok && t.compact(t.ctx, command)
	}
	if t.account.reached != nil {
		t.progress.fail(t.account.reached)
	}
	t.progress.enter(phaseDone)
}

// commandOf returns the command for a plan.
func commandOf(plan compaction.Plan) Compact {
	return Compact{Through: plan.Through, Trim: plan.Trim, Before: plan.Before, After: plan.After, plan: plan}
}
