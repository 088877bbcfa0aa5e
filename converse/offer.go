// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/consort-go/consort/converse/internal/toolchoice"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/invoker"
)

// offer is the set of tools that a model is offered in an exchange. It is immutable,
// and all conversations of a model share it for as long as their roster does not
// change.
type offer struct {
	catalog *ensemble.Catalog // the newest catalog that it was made from; nil for no tools
	set     *Toolset
	tools   map[string]*ensemble.Tool // the tools of the set, by name
	refused map[string]string         // why the model cannot take a tool, by name
	aside   []ensemble.Aside
	added   []string // the last tools of the set, added during the turn
	client  clientOffer
}

// openTools fixes the tools for the turn that begins at an index of the history, unless
// it has done so, and reports the changes.
func (t *turn) openTools(ctx context.Context, begin int) {
	before, client := t.conv.offered, t.clientTools(begin)
	if before == nil || t.conv.offeredAt != begin {
		catalog, err := t.conv.catalog(ctx)
		switch {
		case err != nil && t.timedOut(ctx): // no tool will run, and the model is not asked
			t.tools = &offer{set: &Toolset{}}
			t.emit(TurnStarted{})
			return
		case err != nil && !t.over():
			t.progress.fail(err)
			return
		case err != nil:
			return
		case before == nil || before.catalog != catalog || before.added != nil || before.client != nil || client != nil:
			t.conv.offered = offerWith(catalog, client, t.conv.origin, t.opts.Limits.Tools).withLast(notes.Tools(t.conv.history[max(0, begin):]))
		}
		t.conv.offeredAt = begin
	}
	t.tools = t.conv.offered
	started := TurnStarted{Tools: len(t.tools.set.Definitions), Aside: t.guard.clean.Asides(t.tools.aside)}
	if t.tools.catalog != nil {
		started.Away = redactAway(t.guard.clean, t.tools.catalog.Away())
	}
	if before != nil && before.set != t.tools.set {
		now, then := t.tools.set.Definitions, before.set.Definitions
		started.Added, started.Removed = toolchoice.Without(now, then), toolchoice.Without(then, now)
	}
	t.emit(started)
}

// catalog returns the current catalog of the roster, or nil without a roster.
func (c *Conversation) catalog(ctx context.Context) (*ensemble.Catalog, error) {
	if c.roster == nil {
		return nil, nil
	}
	return c.roster.Catalog(ctx)
}

// Offer divides the tools of a catalog into the tools that a model is offered, in their
// order, and the tools that are set aside, with reasons: the catalog sets them aside,
// the model cannot take them, or there are more than limit or than the model's API
// takes. In the last case each ensemble keeps a fair share, the first of its tools by
// name. Limit has the meaning of [Limits].Tools; model may be nil.
func Offer(catalog *ensemble.Catalog, model Model, limit int) ([]*ensemble.Tool, []ensemble.Aside) {
	o := newOffer(catalog, model, Limits{Tools: limit}.withDefaults().Tools)
	tools := make([]*ensemble.Tool, 0, len(o.set.Definitions))
	for _, definition := range o.set.Definitions {
		tools = append(tools, o.tools[definition.Name])
	}
	return tools, o.aside
}

// offerKey identifies the offers of one catalog.
type offerKey struct {
	model Model
	limit int
}

// offerOf returns the offer of a catalog for a model; it is made once for each.
func offerOf(catalog *ensemble.Catalog, model Model, limit int) *offer {
	if catalog == nil {
		return &offer{set: &Toolset{}}
	}
	key, ok := offerKeyOf(model, limit)
	if !ok {
		return newOffer(catalog, model, limit)
	}
	return catalog.Derive(key, func() any { return newOffer(catalog, model, limit) }).(*offer)
}

// offerKeyOf returns the key of the offers for a model; false if the model cannot be
// the key of a map. Models that take every tool share one key.
func offerKeyOf(model Model, limit int) (offerKey, bool) {
	_, screens := model.(Screener)
	_, limits := model.(Limiter)
	if !screens && !limits {
		return offerKey{nil, limit}, true
	}
	return offerKey{model, limit}, reflect.ValueOf(model).Comparable()
}

func newOffer(catalog *ensemble.Catalog, model Model, limit int) *offer {
	o := &offer{
		catalog: catalog,
		set:     &Toolset{},
		tools:   map[string]*ensemble.Tool{},
		refused: map[string]string{},
		aside:   slices.Clone(catalog.Aside()),
	}
	choice := toolchoice.For(model, limit)
	share, taken := toolchoice.FairShare(catalog.Tools(), choice.Limit), map[*ensemble.Ensemble]int{}
	for _, tool := range catalog.Tools() {
		if o.add(tool, choice, taken[tool.Ensemble()] < share) {
			taken[tool.Ensemble()]++
		}
	}
	return o
}

// add offers one more tool, if its ensemble may have one more and the model can take
// it, and otherwise sets it aside. It reports whether the tool is offered.
func (o *offer) add(tool *ensemble.Tool, choice toolchoice.Choice, may bool) bool {
	definition := *tool.Definition()
	definition.Name = tool.Name()
	err := choice.Screen(&definition)
	switch {
	case o.client[tool.Name()] != nil:
		err = errClientHasName
	case err == nil && may:
		err = choice.Place(len(o.set.Definitions))
	case err == nil:
		err = choice.Place(choice.Limit)
	}
	if err != nil {
		o.refused[tool.Name()] = err.Error()
		o.aside = append(o.aside, ensemble.Aside{
			Ensemble: tool.Ensemble().Name(),
			Tool:     tool.Definition().Name,
			Reason:   err.Error(),
		})
		return false
	}
	o.set.Definitions = append(o.set.Definitions, &definition)
	o.tools[tool.Name()] = tool
	return true
}

// tool returns the tool for a name that the model used, or nil.
func (o *offer) tool(name string) *ensemble.Tool {
	if o == nil || o.tools[name] == nil {
		return nil
	}
	return o.tools[name].Current()
}

// missing returns the failure for an unknown name, with the nearest names.
func (o *offer) missing(name string) *invoker.Failure {
	if reason := o.refused[name]; reason != "" {
		return invoker.Failf(invoker.ToolNotFound, "There is no tool %q: it was set aside: %s.", name, reason)
	}
	switch {
	case o.catalog == nil && len(o.client) > 0:
		return invoker.Failf(invoker.ToolNotFound, "There is no tool %q.", name)
	case o.catalog == nil || len(o.set.Definitions) == 0 && len(o.catalog.Away()) == 0:
		return invoker.Failf(invoker.ToolNotFound, "There is no tool %q; there are no tools in this conversation.", name)
	}
	message := fmt.Sprintf("There is no tool %q.", name)
	nearest := slices.DeleteFunc(o.catalog.Nearest(name, 3), func(name string) bool { return o.refused[name] != "" })
	if len(nearest) > 0 {
		message += " The nearest names are: " + strings.Join(nearest, ", ") + "."
	}
	for _, away := range o.catalog.Away() {
		message += fmt.Sprintf(" The tools of %q are not available at the moment.", away.Ensemble)
	}
	return invoker.Failf(invoker.ToolNotFound, "%s", message)
}
