// SPDX-License-Identifier: Apache-2.0

// Package toolchoice decides which tools a model is offered.
package toolchoice

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
)

// screener and limiter are the methods of converse.Screener and converse.Limiter.
type (
	screener interface {
		Screen(definition *invoker.Definition) error
	}
	limiter interface{ MaxTools() int }
)

// Choice decides about the tools for one model.
type Choice struct {
	Limit int // the maximum number; negative means no limit

	screener screener // nil if the model takes every tool
	why      string   // the reason for setting the others aside
}

// For returns the choice for a model, which may be nil, with at most limit tools, or any number
// if it is negative.
func For(model any, limit int) Choice {
	c := Choice{Limit: limit, why: fmt.Sprintf("a model is offered at most %d tools", limit)}
	c.screener, _ = model.(screener)
	if l, ok := model.(limiter); ok {
		most, err := maxTools(l)
		switch {
		case err != nil:
			c.Limit, c.why = 0, err.Error()
		case most > 0 && (limit < 0 || most < limit):
			c.Limit, c.why = most, fmt.Sprintf("the model's API accepts %d tools per request", most)
		}
	}
	return c
}

// maxTools calls MaxTools. A panic is an error, and then all tools are set aside, as
// after a panic of Model.Screen.
func maxTools(l limiter) (most int, err error) {
	defer foreign.Caught("Model.MaxTools", &err)
	return l.MaxTools(), nil
}

// Screen returns why a model cannot be offered a tool: the tool is not for models, or the model
// rejects it.
func (c Choice) Screen(definition *invoker.Definition) error {
	switch {
	case !definition.IsForModels():
		return errNotForModels
	case c.screener == nil:
		return nil
	}
	return c.screened(definition)
}

var errNotForModels = errors.New("it is only for its app, not for models (_meta.ui.visibility); it can still be called by hand")

// screened calls the model's screener, which may panic.
func (c Choice) screened(definition *invoker.Definition) (err error) {
	defer foreign.Caught("Model.Screen", &err)
	return contain.Error(c.screener.Screen(definition))
}

// Place returns why a model that is offered n tools cannot be offered another one, or nil.
func (c Choice) Place(n int) error {
	if c.Limit >= 0 && n >= c.Limit {
		return errors.New(c.why)
	}
	return nil
}

// FairShare returns how many tools each ensemble may have on offer, so that together
// they do not exceed limit: ensembles with few tools keep all, and those with many
// share the rest. It is at least 1.
func FairShare(tools []*ensemble.Tool, limit int) int {
	counts := map[*ensemble.Ensemble]int{}
	for _, tool := range tools {
		counts[tool.Ensemble()]++
	}
	left := limit
	for i, count := range slices.Sorted(maps.Values(counts)) {
		share := left / (len(counts) - i)
		if count > share {
			return max(1, share)
		}
		left -= count
	}
	return max(1, limit)
}

// Without returns the names of a that b lacks.
func Without(a, b []*invoker.Definition) []string {
	known := make(map[string]bool, len(b))
	for _, definition := range b {
		known[definition.Name] = true
	}
	var names []string
	for _, definition := range a {
		if !known[definition.Name] {
			names = append(names, definition.Name)
		}
	}
	return names
}
