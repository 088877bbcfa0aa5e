// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse"
)

// Compaction configures how a conversation that outgrows its model is shortened.
type Compaction struct {
	converse.Compaction
	// Model is a model of the same API that writes the summaries; empty means the model
	// of the conversation.
	Model values.Value
}

func (c *Compaction) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("window", grammar.Integer(&c.Window, 1)),
		grammar.Key("at", grammar.Number(&c.At, 0.01, 1)),
		grammar.Key("keep", grammar.Integer(&c.Keep, 1)),
		grammar.Key("trim", grammar.CountOrNone(&c.Trim)),
		grammar.Key("model", grammar.Expanded(&c.Model)),
		grammar.Key("instructions", grammar.Text(&c.Instructions)),
		grammar.Key("max_tokens", grammar.Integer(&c.MaxTokens, 1)),
	}
}

func (c *Compaction) check(r *grammar.Reader, n *document.Node) {
	if at := n.Member("at"); at != nil && n.Member("window") == nil {
		r.WrongKey(at, "this is a share of window, which is not set; set window, in tokens")
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
		return grammar.About("compaction.model", errors.New("the summary uses the API of the conversation's model, which is misconfigured"))
	}
	model, err := a.openModel(config.Model, c.Model.Reveal(), config.placer(config.Model, "model", "compaction.model"), o)
	if err != nil {
		return grammar.About("compaction.model", err)
	}
	compaction.Model = model
	if a.fallbacks != nil {
		compaction.Model = converse.Chain(model, a.fallbacks)
	}
	return nil
}
