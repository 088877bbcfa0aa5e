// SPDX-License-Identifier: Apache-2.0

// Package stage provides local ensembles whose tools and prompts change while they are in
// use, for programs that need to show the effect of such changes.
package stage

import (
	"context"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// Stage is an [local.Library] that accepts further tools and prompts. It is the
// source of one ensemble. All methods may be called concurrently.
type Stage struct {
	source ensemble.Source

	mu      sync.Mutex
	tools   []invoker.Invoker
	prompts []local.Prompt
	changed chan struct{}
	heard   func(ensemble.News)
}

// New returns a stage with its initial content.
func New(options local.Library, tools ...invoker.Invoker) *Stage {
	return &Stage{source: options.Source(tools...), changed: make(chan struct{}, 1)}
}

// AddTool offers another tool. It replaces an earlier addition with the same name.
func (s *Stage) AddTool(tool invoker.Invoker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = replace(s.tools, tool, func(t invoker.Invoker) string { return t.Definition().Name })
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// AddPrompt offers another prompt. It replaces an earlier addition with the same name.
func (s *Stage) AddPrompt(prompt local.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = replace(s.prompts, prompt, func(p local.Prompt) string { return p.Name })
	if s.heard != nil {
		s.heard(ensemble.News{Kind: ensemble.PromptsChanged})
	}
}

// replace returns a new slice, because the old one may be in use.
func replace[T any](all []T, one T, name func(T) string) []T {
	var next []T
	for _, t := range all {
		if name(t) != name(one) {
			next = append(next, t)
		}
	}
	return append(next, one)
}

// Open implements [ensemble.Source].
func (s *Stage) Open(ctx context.Context) (ensemble.Connection, error) {
	connection, err := s.source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &staged{connection, connection.(ensemble.Library), s}, nil
}

// staged is a connection with the additions.
type staged struct {
	ensemble.Connection
	ensemble.Library
	stage *Stage
}

func (c *staged) Changed() <-chan struct{} { return c.stage.changed }

func (c *staged) Listen(heard func(ensemble.News)) {
	c.stage.mu.Lock()
	c.stage.heard = heard
	c.stage.mu.Unlock()
	c.Library.Listen(heard)
}

func (c *staged) List(ctx context.Context) (ensemble.Listing, error) {
	listing, err := c.Connection.List(ctx)
	if err == nil {
		c.stage.mu.Lock()
		defer c.stage.mu.Unlock()
		listing.Invokers = append(listing.Invokers, c.stage.tools...)
	}
	return listing, err
}

func (c *staged) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	prompts, err := c.Library.Prompts(ctx)
	if err == nil {
		for _, p := range c.added() {
			prompts = append(prompts, p.Prompt)
		}
	}
	return prompts, err
}

func (c *staged) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	for _, p := range c.added() {
		if p.Name == name {
			return p.Get(ctx, arguments)
		}
	}
	return c.Library.Get(ctx, name, arguments)
}

func (c *staged) added() []local.Prompt {
	c.stage.mu.Lock()
	defer c.stage.mu.Unlock()
	return c.stage.prompts
}
