// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse"
)

// fallbacks is a list of tables with the keys of [Model], without fallbacks of their own.
// The reference describes these keys only once.
func fallbacks(to *[]Model) grammar.Kind {
	v := grammar.Each(to, func(m *Model) grammar.Kind { return grammar.Table(m.ownFields(), m.check) })
	v.Fields = nil
	return v
}

// inherited are the keys that a fallback takes from the first model unless it sets them
// itself: keys for the answers of every API, and the time limits.
var inherited = map[string]func(m, from *Model){
	"max_tokens":       func(m, from *Model) { m.MaxTokens = from.MaxTokens },
	"tool_choice":      func(m, from *Model) { m.ToolChoice = from.ToolChoice },
	"response_format":  func(m, from *Model) { m.ResponseFormat = from.ResponseFormat },
	"stream":           func(m, from *Model) { m.NoStream = from.NoStream },
	"max_retries":      func(m, from *Model) { m.MaxRetries = from.MaxRetries },
	"response_timeout": func(m, from *Model) { m.ResponseTimeout = from.ResponseTimeout },
	"idle_timeout":     func(m, from *Model) { m.IdleTimeout = from.IdleTimeout },
}

// inherit sets the keys that a fallback, the table n, does not set itself.
func (m *Model) inherit(from *Model, n *document.Node) {
	for key, take := range inherited {
		if n.Member(key) == nil {
			take(m, from)
		}
	}
}

// models returns the model and its fallbacks.
func (m *Model) models() []*Model {
	models := []*Model{m}
	for i := range m.Fallbacks {
		models = append(models, &m.Fallbacks[i])
	}
	return models
}

// assembleModel opens the model and its fallbacks.
func (a *Assembly) assembleModel(config *Config, o *AssembleOptions) error {
	if config.Model == nil {
		return nil
	}
	first, err := a.openModel(config.Model, config.Model.Name.Reveal(), config.placer(config.Model, "model", "model.name"), o)
	errs := []error{grammar.About("model", err)}
	var others []converse.Model
	for i, m := range config.Model.models()[1:] {
		table := fmt.Sprintf("model.fallback[%d]", i)
		model, err := a.openModel(m, m.Name.Reveal(), config.placer(m, table, table+".name"), o)
		errs = append(errs, grammar.About(table, err))
		others = append(others, config.finding(model))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	first = config.finding(first)
	a.Model, a.Models = first, append([]converse.Model{first}, others...)
	if len(others) > 0 {
		a.fallbacks = converse.Chain(others...)
		a.Model = converse.Chain(first, a.fallbacks)
	}
	return nil
}

// OpenModel returns another model for a conversation, by name: the configured one or one
// of its fallbacks, and otherwise a model with this name and the other keys of [model]. A
// fallback has no fallbacks itself. Config is the one that the assembly was made of. Close
// closes the model. OpenModel must not be called concurrently.
func (a *Assembly) OpenModel(config *Config, name string) (converse.Model, error) {
	if config.Model == nil {
		return nil, errors.New("the configuration has no [model] table")
	}
	o := &AssembleOptions{Logger: a.Logger}
	for i, m := range config.Model.models() {
		switch {
		case m.Name.Reveal() != name:
		case i == 0:
			return a.Model, nil
		default:
			table := fmt.Sprintf("model.fallback[%d]", i-1)
			model, err := a.openModel(m, name, config.placer(m, table, table+".name"), o)
			if err != nil {
				return nil, err
			}
			return config.finding(model), nil
		}
	}
	other := *config.Model
	other.Name = values.Plain(name)
	if other.decisive().Of() != config.Model.decisive().Of() || other.isContradictory() {
		return nil, fmt.Errorf("the model %q belongs to another provider than that of [model]; add it to the configuration as a [[model.fallback]]", name)
	}
	model, err := a.openModel(&other, name, config.placer(&other, "model", "model.name"), o)
	if err != nil {
		return nil, err
	}
	model = config.finding(model)
	if a.fallbacks != nil {
		return converse.Chain(model, a.fallbacks), nil
	}
	return model, nil
}
