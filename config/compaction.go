// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
)

// Compaction configures how a conversation that outgrows its model is shortened. Zero
// means the default, as in converse.Compaction.
type Compaction struct {
	// Window is the model's context window in tokens; 0 waits until the model rejects a
	// request as too long.
	Window int64
	// At is the share of Window at which compaction begins; 0 means 0.8.
	At float64
	// Keep is how many of the last exchanges stay unchanged; 0 means 4.
	Keep int
	// Trim is the number of bytes to which older results are cut first; nil means 2048,
	// and 0 cuts none.
	Trim *int
	// Model is a model of the same API that writes the summaries; empty means the model
	// of the conversation.
	Model Value
	// Instructions tell the model how to summarize; empty means the library's own.
	Instructions string
	// MaxTokens limits the length of a summary; 0 means 4096.
	MaxTokens int64
}

func (c *Compaction) fields() []field {
	return []field{
		{"window", integer(&c.Window, 1)},
		{"at", number(&c.At, 0.01, 1)},
		{"keep", integer(&c.Keep, 1)},
		{"trim", optional(&c.Trim, func(i *int) value { return integer(i, 0) })},
		{"model", expanded(&c.Model)},
		{"instructions", text(&c.Instructions)},
		{"max_tokens", integer(&c.MaxTokens, 1)},
	}
}

func (c *Compaction) check(r *reader, n *node) {
	if at := n.member("at"); at != nil && n.member("window") == nil {
		r.add(r.problem(at.keyAt, at.path(), "this is a share of window, which is not set; set window, in tokens"))
	}
}

// assembleCompaction creates the compaction and its model.
func (a *Assembly) assembleCompaction(config *Config, o *AssembleOptions) error {
	c := config.Compaction
	if c == nil {
		return nil
	}
	a.Options.Compaction = &converse.Compaction{Window: c.Window, At: c.At, Keep: c.Keep, Instructions: c.Instructions, MaxTokens: c.MaxTokens}
	switch {
	case c.Trim == nil:
	case *c.Trim <= 0:
		a.Options.Compaction.Trim = -1
	default:
		a.Options.Compaction.Trim = *c.Trim
	}
	if c.Model.Reveal() == "" || config.Model == nil {
		return nil
	}
	options, err := config.Model.options()
	if err != nil {
		return about("compaction.model", errors.New("the summary uses the API of the conversation's model, which is misconfigured"))
	}
	options.Logger = o.Logger
	model, err := openaimodel.New(c.Model.Reveal(), options)
	if err != nil {
		return about("compaction.model", err)
	}
	a.Options.Compaction.Model, a.closers = model, append(a.closers, model.Close)
	return nil
}
