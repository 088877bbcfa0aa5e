// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/toolchoice"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/notes"
)

// The offer of a turn only grows at its end: a tool that a server adds while the turn
// runs is offered from the next exchange on. Earlier tools keep their definitions and
// their order, so that the prompt stays cached; a call of a tool that was removed
// fails.

// growTools offers the tools that were added since the last exchange.
func (t *turn) growTools(ctx context.Context) {
	if t.tools.catalog == nil {
		return
	}
	catalog, err := t.conv.roster.Latest(ctx)
	if err != nil || catalog == t.tools.catalog { // the exchange itself reports the error
		return
	}
	before := t.tools
	t.tools = before.growInto(catalog, t.conv.origin, t.opts.Limits.Tools)
	t.conv.offered = t.tools
	event := ToolsAdded{
		Tools: len(t.tools.set.Definitions),
		Added: toolchoice.Without(t.tools.set.Definitions, before.set.Definitions),
		Aside: t.guard.clean.Asides(slices.DeleteFunc(slices.Clone(t.tools.aside), func(a ensemble.Aside) bool { return slices.Contains(before.aside, a) })),
	}
	if len(event.Added)+len(event.Aside) > 0 {
		t.emit(event)
	}
}

// growKey identifies the grown offers of one catalog.
type growKey struct {
	before *offer
	offerKey
}

// growInto returns the offer with the additional tools of a newer catalog. It is made
// once for all conversations that have the same offer.
func (o *offer) growInto(catalog *ensemble.Catalog, model Model, limit int) *offer {
	grow := func() any {
		grown, choice := o.copy(catalog), toolchoice.For(model, limit)
		for _, tool := range catalog.Tools() {
			if grown.tools[tool.Name()] == nil && grown.add(tool, choice, true) {
				grown.added = append(grown.added, tool.Name())
			}
		}
		return grown
	}
	key, ok := offerKeyOf(model, limit)
	if !ok || o.client != nil {
		return grow().(*offer)
	}
	return catalog.Derive(growKey{o, key}, grow).(*offer)
}

// copy returns a copy of the offer, ready for the additional tools of a newer catalog.
func (o *offer) copy(catalog *ensemble.Catalog) *offer {
	copied := &offer{
		catalog: catalog,
		set:     &Toolset{Definitions: slices.Clone(o.set.Definitions)},
		tools:   maps.Clone(o.tools),
		refused: map[string]string{},
		added:   slices.Clone(o.added),
		client:  o.client,
	}
	if catalog != nil {
		copied.aside = catalog.Aside()
	}
	return copied
}

// withLast returns the offer with the named tools at its end, in this order.
func (o *offer) withLast(names []string) *offer {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return o.tools[name] == nil })
	if len(names) == 0 {
		return o
	}
	moved := *o
	moved.set, moved.added = &Toolset{}, names
	last := make([]int, len(names))
	for i, definition := range o.set.Definitions {
		if place := slices.Index(names, definition.Name); place >= 0 {
			last[place] = i
		} else {
			moved.set.Definitions = append(moved.set.Definitions, definition)
		}
	}
	for _, i := range last {
		moved.set.Definitions = append(moved.set.Definitions, o.set.Definitions[i])
	}
	return &moved
}

// noteAdded records in the message's metadata the limit of a final answer, and the tools that were
// added to the turn and are not recorded yet.
func (t *turn) noteAdded(message canister.Assistant, limit Reason) canister.Assistant {
	message.Metadata = notes.WithLimit(message.Metadata, string(limit))
	message.Metadata = notes.WithTools(message.Metadata, t.tools.added, notes.Tools(t.conv.history[max(0, t.conv.offeredAt):]))
	return message
}
