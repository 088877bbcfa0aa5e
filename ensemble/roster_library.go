// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/near"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/uritemplate"
	"github.com/consort-go/consort/invoker"
)

// Resources are the resources and templates of a roster at one moment, in the
// order of the roster.
type Resources struct {
	Resources []Resource
	Templates []Template
	// Aside are the resources and templates that are not offered, usually because an
	// earlier ensemble has the same URI; [Aside].Tool is the URI.
	Aside []Aside
	// Away are the ensembles whose lists are not available.
	Away []Away
}

// Prompts are the prompts of a roster at one moment, in the order of the
// roster.
type Prompts struct {
	Prompts []Prompt
	// Aside are the prompts that are not offered; [Aside].Tool is the prompt's own
	// name.
	Aside []Aside
	// Away are the ensembles whose list is not available.
	Away []Away
}

// Resources returns the resources and templates that all ensembles offer now. It
// queries ensembles concurrently where needed. URIs stay as they are: if two ensembles
// have the same URI, the first in the roster wins. An ensemble that fails is listed in
// Away, even if it is Required, and the others work. Resources fails only if ctx ended
// or the roster is closed.
func (r *Roster) Resources(ctx context.Context) (*Resources, error) {
	resources, err := gather(ctx, r, func(e *Ensemble) *listCache[Resource] { return e.lists.resources })
	if err != nil {
		return nil, err
	}
	templates, err := gather(ctx, r, func(e *Ensemble) *listCache[Template] { return e.lists.templates })
	if err != nil {
		return nil, err
	}
	all := &Resources{Aside: append(resources.aside, templates.aside...), Away: resources.away}
	for _, a := range templates.away {
		if !slices.ContainsFunc(resources.away, func(other Away) bool { return other.Ensemble == a.Ensemble }) {
			all.Away = append(all.Away, a)
		}
	}
	unique(resources.found, func(one *Resource) (string, string) { return one.URI, one.Ensemble }, &all.Resources, &all.Aside)
	unique(templates.found, func(one *Template) (string, string) { return one.URI, one.Ensemble }, &all.Templates, &all.Aside)
	return all, nil
}

// Prompts returns the prompts that all ensembles offer now, as [Roster.Resources] does.
// In the roster, each is known by its [Prompt.FullName].
func (r *Roster) Prompts(ctx context.Context) (*Prompts, error) {
	prompts, err := gather(ctx, r, func(e *Ensemble) *listCache[Prompt] { return e.lists.prompts })
	if err != nil {
		return nil, err
	}
	all := &Prompts{Aside: prompts.aside, Away: prompts.away}
	unique(prompts.found, func(one *Prompt) (string, string) { return one.FullName(), one.Ensemble }, &all.Prompts, &all.Aside)
	return all, nil
}

// gathered is the combined result of querying all ensembles.
type gathered[T any] struct {
	items[T]
	away []Away
}

// gather queries all ensembles concurrently. It waits only briefly for one whose last
// attempt to connect failed.
func gather[T any](ctx context.Context, r *Roster, cache func(*Ensemble) *listCache[T]) (gathered[T], error) {
	ensembles := r.now().ensembles
	lists := make([]gathered[T], len(ensembles))
	var waiting sync.WaitGroup
	for i, e := range ensembles {
		waiting.Go(func() {
			list, err := soon(ctx, e, cache(e).list)
			if err != nil {
				lists[i].away = []Away{{e.name, err}}
				return
			}
			lists[i].items = list
		})
	}
	waiting.Wait()
	var all gathered[T]
	if err := ctx.Err(); err != nil {
		return all, fmt.Errorf("roster: asking the ensembles: %w", err)
	}
	if r.isClosed() {
		return all, fmt.Errorf("roster: %w", ErrClosed)
	}
	for _, l := range lists {
		all.found = append(all.found, l.found...)
		all.aside = append(all.aside, l.aside...)
		all.away = append(all.away, l.away...)
	}
	return all, nil
}

// unique keeps the first item of each key and sets the others aside.
func unique[T any](found []T, of func(*T) (key, ensemble string), kept *[]T, aside *[]Aside) {
	first := make(map[string]string, len(found))
	for i := range found {
		key, ensemble := of(&found[i])
		if other, taken := first[key]; taken {
			*aside = append(*aside, Aside{ensemble, key, fmt.Sprintf("%q has one with the same name", other)})
			continue
		}
		first[key] = ensemble
		*kept = append(*kept, found[i])
	}
}

// ReadResource returns the contents of a resource, which may be several parts. It reads
// from the ensemble that lists the resource. If none does, it reads from the first
// ensemble that has a matching template with a fixed scheme; templates like {+any},
// which match every URI, are ignored. Otherwise, since servers may name resources that
// they do not list, it reads from the only ensemble that offers any, provided that all
// ensembles could be reached. To choose the ensemble, use [Ensemble.ReadResource]. The
// error is an [*invoker.Failure].
func (r *Roster) ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	e, err := r.holder(ctx, uri)
	if err != nil {
		return nil, err
	}
	return e.ReadResource(ctx, uri)
}

// Subscribe makes updates of a resource appear as news in [Roster.Watch] until stop is
// called; see [Ensemble.Subscribe].
func (r *Roster) Subscribe(ctx context.Context, uri string) (stop func(), err error) {
	e, err := r.holder(ctx, uri)
	if err != nil {
		return nil, err
	}
	return e.Subscribe(ctx, uri)
}

// member returns an ensemble that was in the roster when its items were listed.
func (r *Roster) member(name string) (*Ensemble, error) {
	if e, ok := r.Ensemble(name); ok {
		return e, nil
	}
	return nil, invoker.Failf(invoker.NotFound, "The ensemble %q was removed.", shortened(name))
}

// holder finds the ensemble that has a resource.
func (r *Roster) holder(ctx context.Context, uri string) (*Ensemble, error) {
	all, err := r.Resources(ctx)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	holders := make(map[string]bool)
	for i := range all.Resources {
		if all.Resources[i].URI == uri {
			return r.member(all.Resources[i].Ensemble)
		}
		holders[all.Resources[i].Ensemble] = true
	}
	for i := range all.Templates {
		if err := ctx.Err(); err != nil {
			return nil, invoker.AsFailure(err)
		}
		if t := &all.Templates[i]; uritemplate.HasScheme(t.URI) {
			if _, ok := uritemplate.Match(t.URI, uri); ok {
				return r.member(t.Ensemble)
			}
		}
		holders[all.Templates[i].Ensemble] = true
	}
	if len(holders) == 1 && len(all.Away) == 0 {
		for name := range holders {
			return r.member(name)
		}
	}
	return nil, notListed(all.Away, "resource", uri)
}

// notListed returns the failure for a name that no ensemble lists. An ensemble that is
// away may have it.
func notListed(away []Away, what, name string) *invoker.Failure {
	if len(away) > 0 {
		return invoker.Failf(invoker.Unavailable, "No ensemble that can be reached has the %s %q; %q cannot: %w", what, shortened(name), away[0].Ensemble, away[0].Err)
	}
	return invoker.Failf(invoker.NotFound, "No ensemble has the %s %q.", what, shortened(name))
}

// unlisted returns the failure of an operation whose list was not available.
func unlisted(ctx context.Context, err error) *invoker.Failure {
	if ctx.Err() != nil {
		return invoker.AsFailure(ctx.Err())
	}
	failure := invoker.Failf(invoker.Unavailable, "%w", err)
	failure.Retryable = false
	return failure
}

// shortened cuts a name for a message.
func shortened(name string) string {
	name, _ = display.Without(textcut.Bytes(name, maxReport), isInvisibleInName)
	return name
}

// GetPrompt returns the messages of the prompt with this full name (see
// [Prompt.FullName]). The error is an [*invoker.Failure].
func (r *Roster) GetPrompt(ctx context.Context, name string, arguments map[string]string) (*Messages, error) {
	e, own, err := r.prompter(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.GetPrompt(ctx, own, arguments)
}

// prompter finds the ensemble that has a prompt, and the prompt's own name there.
func (r *Roster) prompter(ctx context.Context, name string) (*Ensemble, string, error) {
	all, err := r.Prompts(ctx)
	if err != nil {
		return nil, "", unlisted(ctx, err)
	}
	for i := range all.Prompts {
		if p := &all.Prompts[i]; p.FullName() == name {
			e, err := r.member(p.Ensemble)
			return e, p.Name, err
		}
	}
	failure := notListed(all.Away, "prompt", name)
	for _, meant := range near.Names(name, all.Prompts, 1, func(p Prompt) (string, string) { return p.FullName(), p.Name }) {
		failure.Message += fmt.Sprintf(" Did you mean %q?", meant)
	}
	return nil, "", failure
}

// Complete proposes values for an argument of a prompt, given by its full name, or for
// a variable of a template. The error is an [*invoker.Failure].
func (r *Roster) Complete(ctx context.Context, asked *CompletionRequest) (*Completion, error) {
	if asked == nil || (asked.Prompt == "") == (asked.Template == "") {
		return nil, invoker.Failf(invoker.InvalidArguments, "A completion needs the name of a prompt or a template, and not both.")
	}
	own := *asked
	if asked.Prompt != "" {
		e, name, err := r.prompter(ctx, asked.Prompt)
		if err != nil {
			return nil, err
		}
		own.Prompt = name
		return e.Complete(ctx, &own)
	}
	all, err := r.Resources(ctx)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	for i := range all.Templates {
		if all.Templates[i].URI == asked.Template {
			e, err := r.member(all.Templates[i].Ensemble)
			if err != nil {
				return nil, err
			}
			return e.Complete(ctx, &own)
		}
	}
	return nil, notListed(all.Away, "template", asked.Template)
}
