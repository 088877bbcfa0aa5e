// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/suggest"
	"github.com/consort-go/consort/internal/urirules"
	"github.com/consort-go/consort/internal/uritemplate"
	"github.com/consort-go/consort/invoker"
)

// ItemKind says what an [Item] is.
type ItemKind string

// The kinds of items.
const (
	ToolItem     ItemKind = "tool"
	ResourceItem ItemKind = "resource" // a resource or a template
	PromptItem   ItemKind = "prompt"
)

// Item is something that a [Selection] contains or not.
type Item struct {
	Kind ItemKind
	// Ensemble is the name of the ensemble; empty for a tool that belongs to no roster.
	Ensemble string
	// Name is the ensemble's own name of a tool or prompt, the URI of a resource, or the
	// text of a template.
	Name string
	// Hints are the hints of a tool that its ensemble believes; see [Tool.TrustedHints].
	Hints invoker.Hints
	// Variant means that Name is not the URI that the caller sent but another one that a
	// server may read in its place: without the query, the fragment, the host, or a slash at
	// the end. A function that denies some URIs must deny Name if it is one of them; a
	// function that allows some may accept every Name.
	Variant bool
}

// Selection is the part of a roster that one caller may use. What it does not contain is
// answered like something that does not exist: with the same failure, after the same
// steps. It may be used concurrently, and stays valid when the roster changes.
type Selection struct {
	roster   *Roster
	contains func(Item) bool // nil contains everything

	mu      sync.Mutex
	decided map[Item]bool // of listed resources and prompts
}

// maxDecided bounds the remembered decisions of a selection.
const maxDecided = 1 << 15

// Select returns the part of the roster that contains accepts; nil accepts everything.
// The function must be pure and may be called concurrently: its results are remembered.
// For a URI that a caller sends, it is also called for others that servers may read instead, and
// has to accept all of them; see [Item].Variant.
func (r *Roster) Select(contains func(Item) bool) *Selection {
	return &Selection{roster: r, contains: contains}
}

// Contains reports whether an item is part of the selection, whether or not it exists.
func (s *Selection) Contains(item Item) bool { return s.contains == nil || s.contains(item) }

// ContainsTool is [Selection.Contains] for a tool of the roster.
func (s *Selection) ContainsTool(t *Tool) bool {
	return s.Contains(Item{Kind: ToolItem, Ensemble: t.ensemble.name, Name: t.definition.Name, Hints: t.TrustedHints()})
}

// listed returns a function that reports whether listed items of a kind are part of the
// selection. It remembers its results. They are kept apart from decisions about names that
// a caller sends, so that these take the same time whether or not the name is listed.
func (s *Selection) listed(kind ItemKind) func(ensemble, name string) bool {
	if s.contains == nil {
		return everything
	}
	return func(ensemble, name string) bool {
		item := Item{Kind: kind, Ensemble: ensemble, Name: name}
		s.mu.Lock()
		defer s.mu.Unlock()
		contained, ok := s.decided[item]
		if ok {
			return contained
		}
		if s.decided == nil || len(s.decided) >= maxDecided {
			s.decided = make(map[Item]bool)
		}
		contained = s.contains(item)
		s.decided[item] = contained
		return contained
	}
}

// asked returns a function that reports whether a URI that a caller sent would be part of
// the selection in an ensemble. All URIs that a server may read instead must be part of it too.
func (s *Selection) asked(uri string) func(ensemble string) bool {
	if s.contains == nil {
		return func(string) bool { return true }
	}
	decided := make(map[string]bool)
	readings, ok := urirules.Readings(uri)
	return func(ensemble string) bool {
		contained, known := decided[ensemble]
		if !known {
			contained = ok && !slices.ContainsFunc(readings, func(r urirules.Reading) bool {
				return !s.contains(Item{Kind: ResourceItem, Ensemble: ensemble, Name: r.URI, Variant: r.Variant})
			})
			decided[ensemble] = contained
		}
		return contained
	}
}

// away returns the ensembles that are away and could have an item that was asked for.
func away(all []Away, has func(ensemble string) bool) []Away {
	return slices.DeleteFunc(slices.Clone(all), func(a Away) bool { return !has(a.Ensemble) })
}

// Resources is [Roster.Resources] for the items of the selection. A URI that several
// ensembles have belongs to the first whose resource is part of the selection.
func (s *Selection) Resources(ctx context.Context) (*Resources, error) {
	return s.roster.resources(ctx, s.listed(ResourceItem))
}

// Prompts is [Roster.Prompts] for the items of the selection.
func (s *Selection) Prompts(ctx context.Context) (*Prompts, error) {
	return s.roster.prompts(ctx, s.listed(PromptItem))
}

// Instructions is [Roster.Instructions] for the ensembles whose tools are all in the
// selection, because instructions can name any of them.
func (s *Selection) Instructions(ctx context.Context) []Instructions {
	all := s.roster.offersSoon(ctx)
	return instructionsOf(slices.DeleteFunc(all, func(o *offer) bool {
		return o != nil && slices.ContainsFunc(o.tools, func(t *Tool) bool { return !s.ContainsTool(t) })
	}))
}

// ReadResource is [Roster.ReadResource] for the items of the selection. A URI that a
// template matches must itself be part of it; the template need not be.
func (s *Selection) ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	e, err := s.holder(ctx, uri)
	if err != nil {
		return nil, err
	}
	return e.ReadResource(ctx, uri)
}

// Subscribe is [Roster.Subscribe] for the items of the selection.
func (s *Selection) Subscribe(ctx context.Context, uri string) (stop func(), err error) {
	e, err := s.holder(ctx, uri)
	if err != nil {
		return nil, err
	}
	return e.Subscribe(ctx, uri)
}

// holder finds the ensemble that has a resource. Where the URI is not part of the
// selection, it does not look.
func (s *Selection) holder(ctx context.Context, uri string) (*Ensemble, error) {
	has := s.asked(uri)
	all, err := s.roster.resources(ctx, func(ensemble, _ string) bool { return has(ensemble) })
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	all.Away = away(all.Away, has)
	holders := make(map[string]bool)
	for i := range all.Resources {
		if all.Resources[i].URI == uri {
			return s.roster.member(all.Resources[i].Ensemble)
		}
		holders[all.Resources[i].Ensemble] = true
	}
	for i := range all.Templates {
		if err := ctx.Err(); err != nil {
			return nil, invoker.AsFailure(err)
		}
		if t := &all.Templates[i]; uritemplate.HasScheme(t.URI) {
			if _, ok := uritemplate.Match(t.URI, uri); ok {
				return s.roster.member(t.Ensemble)
			}
		}
		holders[all.Templates[i].Ensemble] = true
	}
	if len(holders) == 1 && len(all.Away) == 0 {
		for name := range holders {
			return s.roster.member(name)
		}
	}
	return nil, notListed(all.Away, "resource", uri)
}

// GetPrompt is [Roster.GetPrompt] for the items of the selection.
func (s *Selection) GetPrompt(ctx context.Context, name string, arguments map[string]string) (*Messages, error) {
	e, own, err := s.prompter(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.GetPrompt(ctx, own, arguments)
}

// prompter finds the ensemble that has a prompt, and the prompt's own name there.
func (s *Selection) prompter(ctx context.Context, name string) (*Ensemble, string, error) {
	all, err := s.Prompts(ctx)
	if err != nil {
		return nil, "", unlisted(ctx, err)
	}
	for i := range all.Prompts {
		if p := &all.Prompts[i]; p.FullName() == name {
			e, err := s.roster.member(p.Ensemble)
			return e, p.Name, err
		}
	}
	failure := notListed(away(all.Away, func(ensemble string) bool { return s.mayHavePrompt(ensemble, name) }), "prompt", name)
	for _, meant := range suggest.Names(name, all.Prompts, 1, func(p Prompt) (string, string) { return p.FullName(), p.Name }) {
		failure.Message += fmt.Sprintf(" Did you mean %q?", meant)
	}
	return nil, "", failure
}

// mayHavePrompt reports whether an ensemble that is away could have a prompt with a full
// name that is part of the selection.
func (s *Selection) mayHavePrompt(ensemble, full string) bool {
	own, ok := strings.CutPrefix(full, ensemble+"__")
	return s.contains == nil || ok && s.Contains(Item{Kind: PromptItem, Ensemble: ensemble, Name: own})
}

// Complete is [Roster.Complete] for the items of the selection. It omits values that
// would make a template the URI of a resource that is not part of it.
func (s *Selection) Complete(ctx context.Context, asked *CompletionRequest) (*Completion, error) {
	if asked == nil || (asked.Prompt == "") == (asked.Template == "") {
		return nil, invoker.Failf(invoker.InvalidArguments, "A completion needs the name of a prompt or a template, and not both.")
	}
	own := *asked
	if asked.Prompt != "" {
		e, name, err := s.prompter(ctx, asked.Prompt)
		if err != nil {
			return nil, err
		}
		own.Prompt = name
		return e.Complete(ctx, &own)
	}
	all, err := s.Resources(ctx)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	for i := range all.Templates {
		if all.Templates[i].URI == asked.Template {
			e, err := s.roster.member(all.Templates[i].Ensemble)
			if err != nil {
				return nil, err
			}
			found, err := e.Complete(ctx, &own)
			return s.contained(e.name, &own, found), err
		}
	}
	has := s.asked(asked.Template)
	return nil, notListed(away(all.Away, has), "template", asked.Template)
}

// contained returns the completion of a variable without the values that lead out of the
// selection. Variables without a value stay as they are in the template.
func (s *Selection) contained(ensemble string, asked *CompletionRequest, found *Completion) *Completion {
	if s.contains == nil || found == nil {
		return found
	}
	some := *found
	some.Values = nil
	for _, value := range found.Values {
		known := map[string]string{asked.Argument: value}
		for name, other := range asked.Others {
			if name != asked.Argument {
				known[name] = other
			}
		}
		if s.asked(uritemplate.Expand(asked.Template, known))(ensemble) {
			some.Values = append(some.Values, value)
		}
	}
	some.Total, some.More = 0, false // they count the omitted values
	return &some
}
