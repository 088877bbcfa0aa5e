// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse"
)

// Compaction configures how a conversation that outgrows its model is shortened.
type Compaction struct {
	converse.Compaction
	// Model is a model of the same API that writes the summaries; empty means the model
	// of the conversation.
	Model Value
}

func (c *Compaction) fields() []field {
	return []field{
		{"window", integer(&c.Window, 1)},
		{"at", number(&c.At, 0.01, 1)},
		{"keep", integer(&c.Keep, 1)},
		{"trim", countOrNone(&c.Trim)},
		{"model", expanded(&c.Model)},
		{"instructions", text(&c.Instructions)},
		{"max_tokens", integer(&c.MaxTokens, 1)},
	}
}

func (c *Compaction) check(r *reader, n *document.Node) {
	if at := n.Member("at"); at != nil && n.Member("window") == nil {
		r.wrongKey(at, "this is a share of window, which is not set; set window, in tokens")
	}
}

// assembleCompaction creates the compaction and its model.
func (a *Assembly) assembleCompaction(config *Config, o *AssembleOptions) error {
	c := config.Compaction
	if c == nil {
		return nil
	}
	compaction := c.Compaction
	a.Options.Compaction = &compaction
	if c.Model.Reveal() == "" || config.Model == nil {
		return nil
	}
	if err := config.Model.checkKey(); err != nil {
		return about("compaction.model", errors.New("the summary uses the API of the conversation's model, which is misconfigured"))
	}
	model, err := a.openModel(config.Model, c.Model.Reveal(), config.placer(config.Model, "model", "compaction.model"), o)
	if err != nil {
		return about("compaction.model", err)
	}
	compaction.Model = model
	if a.fallbacks != nil {
		compaction.Model = converse.Chain(model, a.fallbacks)
	}
	return nil
}
