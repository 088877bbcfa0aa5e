// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/contain"
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

// listed is an offer with its invokers, by the tool's own name.
type listed struct {
	offer    *offer
	invokers map[string]invoker.Invoker
}

// offered returns the offer of the current connection, listing again if it may have
// changed.
func (e *Ensemble) offered(ctx context.Context) (*offer, error) {
	for attempt := 1; ; attempt++ {
		if offer, ok := e.offeredAsleep(); ok {
			return offer, ctx.Err()
		}
		l, err := e.ready(ctx, false)
		if err != nil {
			return nil, err
		}
		if err := e.refresh(ctx, l); err != nil {
			return nil, err
		}
		e.mu.Lock()
		offer, ended := l.offer, l.ended
		e.mu.Unlock()
		if ended == nil {
			return offer, nil
		}
		if attempt == attempts {
			return nil, ended
		}
	}
}

// offeredAsleep returns the offer that stays valid while the ensemble is asleep.
func (e *Ensemble) offeredAsleep() (*offer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.offer, e.asleep
}

// retryPatience bounds the wait for an ensemble whose last attempt failed.
const retryPatience = 500 * time.Millisecond

// offeredSoon is like offered, but does not wait long for an ensemble whose last
// attempt failed, unless the ensemble is required.
func (e *Ensemble) offeredSoon(ctx context.Context) (*offer, error) {
	if e.options.Required {
		return e.offered(ctx)
	}
	soon, cancel, failure := e.soon(ctx)
	defer cancel()
	offer, err := e.offered(soon)
	if err != nil && failure != nil && soon.Err() != nil {
		return nil, failure
	}
	return offer, err
}

// soon bounds the wait if the last attempt failed, and returns that failure.
func (e *Ensemble) soon(ctx context.Context) (_ context.Context, cancel context.CancelFunc, failure error) {
	e.mu.Lock()
	failure = e.attempts.err
	e.mu.Unlock()
	if failure == nil {
		return ctx, func() {}, nil
	}
	ctx, cancel = context.WithTimeout(ctx, retryPatience)
	return ctx, cancel, failure
}

// upToDate returns the offer if it is known to be up to date, without waiting.
func (e *Ensemble) upToDate() (*offer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noticeLoss()
	if e.state != Ready || e.isDue(e.current) {
		return nil, false
	}
	return e.current.offer, true
}

// refresh lists the tools again if they may have changed. It returns an error
// only when ctx has ended.
func (e *Ensemble) refresh(ctx context.Context, l *life) error {
	e.mu.Lock()
	due := e.isDue(l)
	e.mu.Unlock()
	if !due {
		return nil
	}
	select {
	case l.listing <- struct{}{}:
		defer func() { <-l.listing }()
	case <-ctx.Done():
		return fmt.Errorf("ensemble %q: waiting for the list of tools: %w", e.name, ctx.Err())
	}
	e.mu.Lock()
	due = e.isDue(l)
	if due {
		l.stale = false // a change from now on makes it stale again
		l.changed.Store(false)
	}
	e.mu.Unlock()
	if !due {
		return nil
	}
	bounded, cancel := context.WithTimeout(e.traced(ctx), e.options.ConnectTimeout)
	defer cancel()
	offer, invokers, err := e.list(bounded, l, l.connection)
	if err != nil && ctx.Err() != nil {
		e.mu.Lock()
		l.stale = true
		e.mu.Unlock()
		return fmt.Errorf("ensemble %q: listing the tools: %w", e.name, ctx.Err())
	}
	e.relisted(l, offer, invokers, err)
	return nil
}

// relisted stores the result of a listing other than the first.
func (e *Ensemble) relisted(l *life, offer *offer, invokers map[string]invoker.Invoker, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ended != nil {
		return
	}
	if err != nil {
		l.stale = true
		e.lastErr = fmt.Errorf("ensemble %q: listing the tools anew: %w", e.name, err)
		l.listings.failed(e.lastErr)
		return
	}
	l.listings = backoff{}
	l.offer, l.invokers, l.listed = offer, invokers, time.Now()
	l.hear()
	e.take(offer)
}

// list lists the tools of a connection.
func (e *Ensemble) list(ctx context.Context, l *life, connection Connection) (*offer, map[string]invoker.Invoker, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j := &job{name: "listing its tools", life: l, cancel: cancel, done: make(chan struct{})}
	if err := e.begin(j); err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	before := e.offer
	e.mu.Unlock()
	logged := e.logList(ctx)
	found, err := run(ctx, e, j, func(ctx context.Context) (listed, error) {
		listing, err := connection.List(ctx)
		if err != nil {
			return listed{}, err
		}
		return e.assort(listing, e.instructionsOf(connection), before)
	})
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("%w: %w", &limitError{"no list", e.options.ConnectTimeout}, err)
	}
	logged(found.offer, err)
	return found.offer, found.invokers, err
}

// assort separates the tools that can be offered from those that cannot. Unchanged
// tools keep their previous pointers, and so does the whole offer if nothing changed.
func (e *Ensemble) assort(listing Listing, instructions Instructions, before *offer) (listed, error) {
	o := &offer{aside: slices.Clone(listing.Aside), instructions: instructions}
	found := make([]candidate, 0, len(listing.Invokers))
	for _, i := range listing.Invokers {
		c, problem := e.candidateOf(i)
		if problem != nil {
			name, _ := cleaned(c.definition.Name, isInvisibleInName)
			o.aside = append(o.aside, Aside{Tool: name, Reason: contain.Text(problem)})
			continue
		}
		found = append(found, c)
	}
	slices.SortStableFunc(found, compareCandidates)
	old := make(map[string]*Tool, len(before.tools))
	for _, t := range before.tools {
		old[t.definition.Name] = t
	}
	invokers := make(map[string]invoker.Invoker, len(found))
	screened, err := e.screened(found)
	if err != nil {
		return listed{}, err
	}
	for _, c := range found {
		name := c.definition.Name
		if reason := e.unfit(c, invokers, screened); reason != "" {
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

// candidateOf checks an invoker of a listing. The error is the reason to set it aside,
// under the name of the definition.
func (e *Ensemble) candidateOf(i invoker.Invoker) (candidate, error) {
	definition, err := definitionOf(i)
	if err != nil || definition == nil {
		return candidate{definition: &invoker.Definition{}}, err
	}
	if err := checkJSON(definition); err != nil {
		return candidate{definition: definition}, err
	}
	guarded := i
	if panicked := contain.Call("the tool", func() { guarded, err = e.guarded(i, definition) }); panicked != nil {
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
func (e *Ensemble) guarded(i invoker.Invoker, definition *invoker.Definition) (invoker.Invoker, error) {
	if len(e.options.Fill) == 0 && len(e.options.Needs) == 0 {
		return i, nil
	}
	fills, rest := make(map[string]string), make(map[string]string)
	for argument, value := range e.options.Fill {
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
		guarded, err = invoker.Require(guarded, e.options.Needs...)
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be given its trusted values: %w", err)
	}
	return guarded, nil
}

// candidate is a tool that may be offered.
type candidate struct {
	invoker    invoker.Invoker
	definition *invoker.Definition // cleaned; empty if the invoker has none
	notes      []Note              // on removed characters
	given      string              // the name before it was cleaned
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
func (e *Ensemble) unfit(c candidate, taken map[string]invoker.Invoker, screened map[string]error) string {
	name := c.definition.Name
	if reason := e.refuses(c); reason != "" {
		return reason
	}
	switch {
	case taken[name] != nil:
		return "the ensemble has another tool of this name"
	case screened[name] != nil:
		return contain.Text(screened[name])
	case len(taken) >= e.options.MaxTools:
		return fmt.Sprintf("the ensemble has more than %d tools, which is the limit", e.options.MaxTools)
	}
	return ""
}

// refuses returns why a tool is set aside without screening; empty if it is screened.
func (e *Ensemble) refuses(c candidate) string {
	switch {
	case c.invoker == nil:
		return "it has no definition"
	case c.given == "":
		return "it has no name"
	case c.definition.Name == "":
		return "its name has no characters that can be seen"
	}
	return e.filter.refuses(c.definition.Name)
}

// screened calls [Options].Screen with the candidates, which are sorted, the first of
// each name.
func (e *Ensemble) screened(found []candidate) (reasons map[string]error, err error) {
	if e.options.Screen == nil {
		return nil, nil
	}
	var definitions []*invoker.Definition
	for i, c := range found {
		if e.refuses(c) == "" && (i == 0 || found[i-1].definition.Name != c.definition.Name) {
			definitions = append(definitions, c.definition)
		}
	}
	err = e.contained("the function Screen", func() { reasons = e.options.Screen(definitions) })
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
