// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"fmt"
)

// The defaults of [Compaction].
const (
	defaultCompactAt        = 0.8
	defaultCompactKeep      = 4
	defaultCompactTrim      = 2 << 10
	defaultCompactMaxTokens = 4096
)

// Compaction says what becomes of a conversation that outgrows its model: see
// "Long conversations" in the package comment. The zero value of each field
// means the default that it names.
type Compaction struct {
	// Window is how many tokens the model takes, those of the request and of
	// the answer together. Without it, 0, compaction begins when the model says
	// that a request is too long; see [CodeContextLength].
	Window int64
	// At is the share of Window at which compaction begins, above 0 and up to 1;
	// default 0.8.
	At float64
	// Keep is how many exchanges at the end stay as they are: what the model
	// said, the calls that it asked for and their results. It is halved, down to
	// 1, as long as that is not enough. Default 4.
	Keep int
	// Trim is to how many bytes the results of tools before these are cut first;
	// if that is enough, nothing is summarised. Default 2048; negative cuts none.
	Trim int
	// Model writes the summaries; nil takes that of the conversation. It should
	// have no smaller window.
	Model Model
	// Instructions tell the model how to summarise, in place of the default. How
	// long a summary may be, and that what is summarised is to be read and not
	// to be obeyed, is told behind them.
	Instructions string
	// MaxTokens bounds a summary; default 4096, or an eighth of Window if that
	// is less.
	MaxTokens int64
}

// check says what is wrong with the options.
func (c *Compaction) check() error {
	switch {
	case c == nil:
	case c.Window < 0:
		return fmt.Errorf("converse: Compaction.Window is %d; it is a number of tokens, or 0 if it is not known", c.Window)
	case !(c.At >= 0 && c.At <= 1):
		return fmt.Errorf("converse: Compaction.At is %v; it is a share of the window, above 0 and up to 1", c.At)
	case c.Keep < 0:
		return fmt.Errorf("converse: Compaction.Keep is %d; at least one exchange has to stay", c.Keep)
	case c.MaxTokens < 0:
		return fmt.Errorf("converse: Compaction.MaxTokens is %d; a summary has to have some", c.MaxTokens)
	}
	return nil
}

// Policy is what [Next] goes by beside the history. Its zero value has the
// default limits and no compaction.
type Policy struct {
	// Conversation is its identity; see [WaitingIn]. Empty is that of all waits.
	Conversation string
	// Identity stands for whom the work is done, in the form of [canister.Wait].
	// While an answer for it is there that was not used up, the same invocation does
	// not wait for an answer for somebody else. Empty is that of all waits.
	Identity string
	Limits   Limits
	// Compaction is that of [Options]; nil compacts nothing.
	Compaction *Compaction
	// Refused is the size, in tokens, of a request that the model has refused as
	// too long; 0 if there was none. It counts as a window.
	Refused int64
	// RefusedPart is the same of a request for a summary.
	RefusedPart int64
}

// options returns the compaction with its defaults; there has to be one.
func (p Policy) options() Compaction {
	c := *p.Compaction
	most := int64(defaultCompactMaxTokens)
	if window := lesser(c.Window, p.Refused); window > 0 {
		most = max(1, min(most, window/8))
	}
	c.At = cmp.Or(c.At, defaultCompactAt)
	c.Keep = cmp.Or(c.Keep, defaultCompactKeep)
	c.Trim = cmp.Or(c.Trim, defaultCompactTrim)
	c.MaxTokens = cmp.Or(c.MaxTokens, most)
	return c
}

// Compact makes the next requests shorter. It is one append: a [canister.Document]
// that says what becomes of what is before it. The history loses nothing.
type Compact struct {
	// Through is the ID of the last canister that it is about. No invocation is
	// parted from its results by it.
	Through string
	// Trim is to how many bytes results are cut, without asking the model; 0
	// has all up to Through summarised by the model.
	Trim int
	// Before and After are the sizes of the next request in tokens, as far as
	// they can be told; After is a guess if there is to be a summary.
	Before, After int64

	marks  marks // what is there already
	cut    int   // the place behind Through
	hidden int64 // the tokens that a summary takes the place of
	part   int64 // the tokens that a request for a summary may have
}

func (Compact) command() {}
