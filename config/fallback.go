// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/converse"
)

// fallbacks is a list of tables with the keys of [Model], without fallbacks of their own.
// The reference describes these keys only once.
func fallbacks(to *[]Model) value {
	v := each(to, func(m *Model) value { return tableOf(m.ownFields(), m.check) })
	v.fields = nil
	return v
}

// inherit sets the keys that the answers of all models have in common, and the time
// limits, unless the fallback sets them itself. Every API has these keys.
func (m *Model) inherit(from *Model, n *node) {
	for key, take := range map[string]func(){
		"max_tokens":       func() { m.MaxTokens = from.MaxTokens },
		"tool_choice":      func() { m.ToolChoice = from.ToolChoice },
		"response_format":  func() { m.ResponseFormat = from.ResponseFormat },
		"stream":           func() { m.NoStream = from.NoStream },
		"max_retries":      func() { m.MaxRetries = from.MaxRetries },
		"response_timeout": func() { m.ResponseTimeout = from.ResponseTimeout },
		"idle_timeout":     func() { m.IdleTimeout = from.IdleTimeout },
	} {
		if n.member(key) == nil {
			take()
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
	errs := []error{about("model", err)}
	var others []converse.Model
	for i, m := range config.Model.models()[1:] {
		table := fmt.Sprintf("model.fallback[%d]", i)
		model, err := a.openModel(m, m.Name.Reveal(), config.placer(m, table, table+".name"), o)
		errs = append(errs, about(table, err))
		others = append(others, model)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a.Model = first
	if len(others) > 0 {
		a.fallbacks = converse.Chain(others...)
		a.Model = converse.Chain(first, a.fallbacks)
	}
	return nil
}
