// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
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
	return r.resources(ctx, everything)
}

// everything keeps each item of a list.
func everything(ensemble, name string) bool { return true }

// resources is like Resources, but only of items that keep accepts.
func (r *Roster) resources(ctx context.Context, keep func(ensemble, uri string) bool) (*Resources, error) {
	resources, err := gather(ctx, r, func(e *Ensemble) *listCache[Resource] { return e.lists.resources })
	if err != nil {
		return nil, err
	}
	templates, err := gather(ctx, r, func(e *Ensemble) *listCache[Template] { return e.lists.templates })
	if err != nil {
		return nil, err
	}
	all := &Resources{Aside: kept(append(resources.aside, templates.aside...), keep), Away: resources.away}
	for _, a := range templates.away {
		if !slices.ContainsFunc(resources.away, func(other Away) bool { return other.Ensemble == a.Ensemble }) {
			all.Away = append(all.Away, a)
		}
	}
	ofResource := func(one *Resource) (string, string, bool) { return one.URI, one.Ensemble, keep(one.Ensemble, one.URI) }
	ofTemplate := func(one *Template) (string, string, bool) { return one.URI, one.Ensemble, keep(one.Ensemble, one.URI) }
	unique(resources.found, ofResource, &all.Resources, &all.Aside)
	unique(templates.found, ofTemplate, &all.Templates, &all.Aside)
	return all, nil
}

// Prompts returns the prompts that all ensembles offer now, as [Roster.Resources] does.
// In the roster, each is known by its [Prompt.FullName].
func (r *Roster) Prompts(ctx context.Context) (*Prompts, error) {
	return r.prompts(ctx, everything)
}

// prompts is like Prompts, but only of prompts that keep accepts.
func (r *Roster) prompts(ctx context.Context, keep func(ensemble, name string) bool) (*Prompts, error) {
	prompts, err := gather(ctx, r, func(e *Ensemble) *listCache[Prompt] { return e.lists.prompts })
	if err != nil {
		return nil, err
	}
	all := &Prompts{Aside: kept(prompts.aside, keep), Away: prompts.away}
	of := func(one *Prompt) (string, string, bool) {
		return one.FullName(), one.Ensemble, keep(one.Ensemble, one.Name)
	}
	unique(prompts.found, of, &all.Prompts, &all.Aside)
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

// unique keeps the first item of each key and sets the others aside. It omits items that
// are not to be kept.
func unique[T any](found []T, of func(*T) (key, ensemble string, keep bool), kept *[]T, aside *[]Aside) {
	first := make(map[string]string, len(found))
	for i := range found {
		key, ensemble, keep := of(&found[i])
		if !keep {
			continue
		}
		if other, taken := first[key]; taken {
			*aside = append(*aside, Aside{ensemble, key, fmt.Sprintf("%q has one with the same name", other)})
			continue
		}
		first[key] = ensemble
		*kept = append(*kept, found[i])
	}
}

// kept returns the items set aside that keep accepts.
func kept(aside []Aside, keep func(ensemble, name string) bool) []Aside {
	return slices.DeleteFunc(aside, func(a Aside) bool { return !keep(a.Ensemble, a.Tool) })
}

// ReadResource returns the contents of a resource, which may be several parts. It reads
// from the ensemble that lists the resource. If none does, it reads from the first
// ensemble that has a matching template with a fixed scheme; templates like {+any},
// which match every URI, are ignored. Otherwise, since servers may name resources that
// they do not list, it reads from the only ensemble that offers any, provided that all
// ensembles could be reached. To choose the ensemble, use [Ensemble.ReadResource]. The
// error is an [*invoker.Failure].
func (r *Roster) ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	return r.Select(nil).ReadResource(ctx, uri)
}

// Subscribe makes updates of a resource appear as news in [Roster.Watch] until stop is
// called; see [Ensemble.Subscribe].
func (r *Roster) Subscribe(ctx context.Context, uri string) (stop func(), err error) {
	return r.Select(nil).Subscribe(ctx, uri)
}

// member returns an ensemble that was in the roster when its items were listed.
func (r *Roster) member(name string) (*Ensemble, error) {
	if e, ok := r.Ensemble(name); ok {
		return e, nil
	}
	return nil, invoker.Failf(invoker.NotFound, "The ensemble %q was removed.", shortened(name))
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
	return r.Select(nil).GetPrompt(ctx, name, arguments)
}

// Complete proposes values for an argument of a prompt, given by its full name, or for
// a variable of a template. The error is an [*invoker.Failure].
func (r *Roster) Complete(ctx context.Context, asked *CompletionRequest) (*Completion, error) {
	return r.Select(nil).Complete(ctx, asked)
}
