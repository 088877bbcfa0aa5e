// SPDX-License-Identifier: Apache-2.0

// Package overrides gives tools of servers other names and descriptions.
package overrides

import (
	"context"
	"maps"
	"slices"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Override replaces the name or the description of a tool. An empty field changes nothing.
type Override struct {
	Name, Description string
}

// Apply applies overrides, by the server's own names of the tools, to a list of tools. An
// override of a tool that the server does not have is set aside. Apply may change the list.
func Apply(listing ensemble.Listing, overrides map[string]Override) ensemble.Listing {
	unused := maps.Clone(overrides)
	for i, listed := range listing.Invokers {
		if listed == nil {
			continue
		}
		definition := listed.Definition()
		if definition == nil {
			continue
		}
		delete(unused, definition.Name)
		if override, ok := overrides[definition.Name]; ok {
			listing.Invokers[i] = &tool{listed, override.of(definition)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		listing.Aside = append(listing.Aside, ensemble.Aside{Tool: name, Reason: "the configuration overrides it, and the server has no such tool"})
	}
	return listing
}

// of returns a definition with the override.
func (o Override) of(definition *invoker.Definition) *invoker.Definition {
	changed := *definition
	if o.Name != "" {
		changed.Name = o.Name
	}
	if o.Description != "" {
		changed.Description = o.Description
	}
	return &changed
}

// tool is a tool with another definition. Its server is called with the name that inner has.
type tool struct {
	inner      invoker.Invoker
	definition *invoker.Definition
}

func (t *tool) Definition() *invoker.Definition { return t.definition }

func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	return t.inner.Invoke(ctx, call)
}
