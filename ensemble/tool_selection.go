// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/invoker"
)

// offer is the tools of an ensemble after a listing. It never changes; the same offer
// is used as long as listings return the same.
type offer struct {
	tools []*Tool // sorted by name
	aside []Aside // sorted by tool
	notes []Note  // sorted by tool

	instructions Instructions // of the server, as passed on
}

// byOwnName returns the tools by their own names.
func (o *offer) byOwnName() map[string]*Tool {
	all := make(map[string]*Tool, len(o.tools))
	for _, t := range o.tools {
		all[t.definition.Name] = t
	}
	return all
}

// selectTools sets the tools aside that cannot be offered. Unchanged tools keep their
// previous pointers, and so does the whole offer if nothing changed.
func selectTools(e *Ensemble, listing Listing, instructions Instructions, before *offer) (listed, error) {
	o := &offer{aside: slices.Clone(listing.Aside), instructions: instructions}
	found := make([]candidate, 0, len(listing.Invokers))
	for _, i := range listing.Invokers {
		c, problem := newCandidate(i, &e.options)
		if problem != nil {
			name, _ := display.Without(c.definition.Name, isInvisibleInName)
			o.aside = append(o.aside, Aside{Tool: name, Reason: contain.Text(problem)})
			continue
		}
		found = append(found, c)
	}
	slices.SortStableFunc(found, compareCandidates)
	screened, err := e.screened(found)
	if err != nil {
		return listed{}, err
	}
	old := before.byOwnName()
	invokers := make(map[string]invoker.Invoker, len(found))
	for _, c := range found {
		name := c.definition.Name
		if reason := c.unfit(&e.options, invokers, screened); reason != "" {
			o.aside = append(o.aside, Aside{Tool: name, Reason: reason})
			continue
		}
		invokers[name] = c.invoker
		tool := old[name]
		if tool == nil || !reflect.DeepEqual(tool.definition, c.definition) {
			tool = &Tool{name: NameFor(e.name, name), ensemble: e, definition: c.definition}
		}
		o.tools = append(o.tools, tool)
		o.notes = append(o.notes, c.notes...)
	}
	for i := range o.aside {
		o.aside[i].Ensemble = e.name
	}
	slices.SortFunc(o.tools, compareTools)
	slices.SortFunc(o.aside, compareAside)
	if slices.Equal(o.tools, before.tools) && slices.Equal(o.aside, before.aside) && slices.Equal(o.notes, before.notes) && o.instructions == before.instructions {
		o = before
	}
	return listed{o, invokers}, nil
}

// candidate is a tool that may be offered.
type candidate struct {
	invoker    invoker.Invoker
	definition *invoker.Definition // cleaned; empty if the invoker has none
	notes      []Note              // on removed characters
	given      string              // the name before it was cleaned
}

// newCandidate checks an invoker of a listing. The error is the reason to set it aside,
// under the name of the definition.
func newCandidate(i invoker.Invoker, o *Options) (candidate, error) {
	definition, err := definitionOf(i)
	if err != nil || definition == nil {
		return candidate{definition: &invoker.Definition{}}, err
	}
	if err := checkJSON(definition); err != nil {
		return candidate{definition: definition}, err
	}
	guarded := i
	if panicked := contain.Call("the tool", func() { guarded, err = o.guarded(i, definition) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return candidate{definition: definition}, err
	}
	if definition, err = definitionOf(guarded); err != nil || definition == nil {
		return candidate{definition: &invoker.Definition{}}, err
	}
	cleaned, notes := cleanDefinition(definition)
	return candidate{guarded, cleaned, notes, definition.Name}, nil
}

// checkJSON returns an error if a part of a definition is not JSON or not a schema.
// Passed on, it would make the whole list invalid.
func checkJSON(d *invoker.Definition) error {
	input, output := bytes.TrimSpace(d.InputSchema), bytes.TrimSpace(d.OutputSchema)
	switch {
	case len(input) > 0 && !json.Valid(input):
		return errors.New("its input schema is not JSON")
	case len(input) > 0 && input[0] != '{' && string(input) != "null":
		return errors.New("its input schema is not a JSON object")
	case len(output) > 0 && !json.Valid(output):
		return errors.New("its output schema is not JSON")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Metadata)) {
		if !json.Valid(d.Metadata[name]) {
			return fmt.Errorf("its metadata %q is not JSON", name)
		}
	}
	return nil
}

// guarded returns the invoker wrapped as Options.Fill and Options.Needs require.
func (o *Options) guarded(i invoker.Invoker, definition *invoker.Definition) (invoker.Invoker, error) {
	if len(o.Fill) == 0 && len(o.Needs) == 0 {
		return i, nil
	}
	fills, rest := make(map[string]string), make(map[string]string)
	for argument, value := range o.Fill {
		if definition.Takes(argument) {
			fills[argument] = value
		} else {
			rest[argument] = value // the tool may take it without declaring it
		}
	}
	guarded, err := invoker.Fill(i, fills)
	if err == nil {
		guarded, err = invoker.Withhold(guarded, rest)
	}
	if err == nil {
		guarded, err = invoker.Require(guarded, o.Needs...)
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be given its trusted values: %w", err)
	}
	return guarded, nil
}

// compareCandidates sorts by name, so that the tools on offer do not depend on the
// order of the listing. Among tools with the same name, the one that had it originally
// precedes the others, which have it only after cleaning.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.definition.Name, b.definition.Name),
		cmp.Compare(len(a.given), len(b.given)),
		cmp.Compare(a.given, b.given),
	)
}

// unfit returns why a tool cannot be offered together with the tools in taken; empty if
// it can. screened is the result of [Options].Screen.
func (c candidate) unfit(o *Options, taken map[string]invoker.Invoker, screened map[string]error) string {
	name := c.definition.Name
	if reason := c.refused(o); reason != "" {
		return reason
	}
	switch {
	case taken[name] != nil:
		return "the ensemble has another tool of this name"
	case screened[name] != nil:
		return contain.Text(screened[name])
	case len(taken) >= o.MaxTools:
		return fmt.Sprintf("the ensemble has more than %d tools, which is the limit", o.MaxTools)
	}
	return ""
}

// refused returns why a tool is set aside without screening; empty if it is screened.
func (c candidate) refused(o *Options) string {
	tool := c.definition.Name
	switch {
	case c.invoker == nil:
		return "it has no definition"
	case c.given == "":
		return "it has no name"
	case tool == "":
		return "its name has no visible characters"
	}
	return o.excluded(tool)
}

// screened calls [Options].Screen with the candidates, which are sorted, the first of
// each name.
func (e *Ensemble) screened(found []candidate) (reasons map[string]error, err error) {
	if e.options.Screen == nil {
		return nil, nil
	}
	var definitions []*invoker.Definition
	for i, c := range found {
		if c.refused(&e.options) == "" && (i == 0 || found[i-1].definition.Name != c.definition.Name) {
			definitions = append(definitions, c.definition)
		}
	}
	err = e.foreign.call("the function Screen", func() { reasons = e.options.Screen(definitions) })
	return reasons, err
}

func compareTools(a, b *Tool) int {
	return cmp.Or(
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.ensemble.name, b.ensemble.name),
		cmp.Compare(a.definition.Name, b.definition.Name),
	)
}

func compareAside(a, b Aside) int {
	return cmp.Or(
		cmp.Compare(a.Ensemble, b.Ensemble),
		cmp.Compare(a.Tool, b.Tool),
		cmp.Compare(a.Reason, b.Reason),
	)
}
