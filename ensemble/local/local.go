// SPDX-License-Identifier: Apache-2.0

// Package local offers resources and prompts of Go functions as an ensemble. An ensemble of
// tools alone is [ensemble.Local].
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/lifetime"
	"github.com/consort-go/consort/internal/ownfunctions"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/uritemplate"
	"github.com/consort-go/consort/invoker"
)

const maxName = 200 // bytes of a name or a URI in a message

// Library is the resources and prompts of an ensemble. Functions may be
// called concurrently, and must return soon after their context ends; the context
// carries the trusted values of the caller. Of a plain error, the caller sees only the
// code EXECUTION_FAILED; with [invoker.Failf] a function returns a message and another
// code, such as [invoker.NotFound].
type Library struct {
	Resources []Resource
	Templates []Template
	Prompts   []Prompt
	// Updates reports that resources were updated. May be nil.
	Updates *Updates
}

// Resource is a resource that a Go function reads.
type Resource struct {
	ensemble.Resource
	// Read returns the contents of the resource. A part without a URI gets the URI of
	// the resource, and a part without a media type the media type of the resource.
	Read func(ctx context.Context) ([]canister.ResourceContent, error)
}

// Template is a family of resources that a Go function reads.
type Template struct {
	ensemble.Template
	// Read returns the contents of the resource with this URI; variables are the values
	// of the template's variables in it.
	Read func(ctx context.Context, uri string, variables map[string]string) ([]canister.ResourceContent, error)
	// Complete proposes values for a variable; nil proposes none.
	Complete func(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error)
}

// Prompt is a prompt that a Go function writes.
type Prompt struct {
	ensemble.Prompt
	// Get returns the messages. All required arguments are present, and only arguments
	// that the prompt declares.
	Get func(ctx context.Context, arguments map[string]string) (*ensemble.Messages, error)
	// Complete proposes values for an argument; nil proposes none.
	Complete func(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error)
}

// Updates notifies local ensembles of updated resources. The zero value is ready to
// use, and all methods may be called concurrently.
type Updates struct {
	mu        sync.Mutex
	listeners map[*connection]func(ensemble.News)
}

// Tell reports that the resource with this URI was updated. It does not block.
func (u *Updates) Tell(uri string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, heard := range u.listeners {
		heard(ensemble.News{Kind: ensemble.ResourceUpdated, URI: uri})
	}
}

func (u *Updates) set(c *connection, heard func(ensemble.News)) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if heard == nil {
		delete(u.listeners, c)
		return
	}
	if u.listeners == nil {
		u.listeners = make(map[*connection]func(ensemble.News))
	}
	u.listeners[c] = heard
}

// Source returns a source that offers the resources and prompts, and the invokers as
// tools, for [ensemble.New]. If the library is invalid, Open fails. The default of
// [ensemble.Options].Trust is [ensemble.TrustAll], as for [ensemble.LocalSource].
func (l Library) Source(invokers ...invoker.Invoker) ensemble.Source {
	l.Resources = slices.Clone(l.Resources)
	l.Templates = slices.Clone(l.Templates)
	l.Prompts = slices.Clone(l.Prompts)
	return &source{tools: ensemble.LocalSource(invokers...), library: &l, problem: l.check()}
}

// check returns all errors in the library, joined.
func (l *Library) check() error {
	var problems []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for i, r := range l.Resources {
		wrong(r.URI == "", "resource %d (%q) has no URI", i+1, r.Name)
		wrong(r.URI != "" && r.Read == nil, "resource %q has no function Read", r.URI)
	}
	for i, t := range l.Templates {
		err := uritemplate.Check(t.URI)
		wrong(t.URI == "", "template %d (%q) has no URI template", i+1, t.Name)
		wrong(t.URI != "" && err != nil, "template %q is not a URI template (RFC 6570): %w", textcut.Bytes(t.URI, maxName), err)
		wrong(t.URI != "" && err == nil && t.Read == nil, "template %q has no function Read", t.URI)
	}
	for i, p := range l.Prompts {
		wrong(p.Name == "", "prompt %d has no name", i+1)
		wrong(p.Name != "" && p.Get == nil, "prompt %q has no function Get", p.Name)
	}
	return errors.Join(problems...)
}

type source struct {
	ownfunctions.Mark
	tools   ensemble.Source
	library *Library
	problem error
}

// Open implements [ensemble.Source].
func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	if s.problem != nil {
		return nil, s.problem
	}
	tools, err := s.tools.Open(ctx)
	if err != nil {
		return nil, err
	}
	c := &connection{Connection: tools, library: s.library}
	c.alive, c.end = context.WithCancel(context.Background())
	return c, nil
}

// connection is a connection of Go functions with a library.
type connection struct {
	ensemble.Connection
	library *Library
	alive   context.Context
	end     context.CancelFunc
}

// Close implements [ensemble.Connection].
func (c *connection) Close(ctx context.Context) error {
	c.library.Updates.set(c, nil)
	c.end()
	return c.Connection.Close(ctx)
}

// Listen implements [ensemble.Library].
func (c *connection) Listen(heard func(ensemble.News)) {
	if c.alive.Err() == nil {
		c.library.Updates.set(c, heard)
	}
}

// Resources implements [ensemble.Library].
func (c *connection) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	return described(ctx, c, c.library.Resources, func(r Resource) ensemble.Resource { return r.Resource })
}

// Templates implements [ensemble.Library].
func (c *connection) Templates(ctx context.Context) ([]ensemble.Template, error) {
	return described(ctx, c, c.library.Templates, func(t Template) ensemble.Template { return t.Template })
}

// Prompts implements [ensemble.Library].
func (c *connection) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	return described(ctx, c, c.library.Prompts, func(p Prompt) ensemble.Prompt { return p.Prompt })
}

// described returns the descriptions of all resources, templates or prompts.
func described[L, T any](ctx context.Context, c *connection, all []L, of func(L) T) ([]T, error) {
	return lifetime.During(ctx, c.alive, func(context.Context) ([]T, error) {
		var found []T
		for _, one := range all {
			found = append(found, of(one))
		}
		return found, nil
	})
}

// Read implements [ensemble.Library].
func (c *connection) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	return lifetime.During(ctx, c.alive, func(ctx context.Context) ([]canister.ResourceContent, error) {
		for _, r := range c.library.Resources {
			if r.URI == uri {
				parts, err := r.Read(ctx)
				return named(parts, uri, r.MIME), err
			}
		}
		for _, t := range c.library.Templates {
			if values, ok := uritemplate.Match(t.URI, uri); ok {
				parts, err := t.Read(ctx, uri, values)
				return named(parts, uri, t.MIME), err
			}
		}
		return nil, noResource(uri)
	})
}

func noResource(uri string) error {
	return invoker.Failf(invoker.NotFound, "There is no resource %q.", textcut.Bytes(uri, maxName))
}

// named returns the parts with missing URIs and media types filled in.
func named(parts []canister.ResourceContent, uri, mime string) []canister.ResourceContent {
	parts = slices.Clone(parts)
	for i := range parts {
		if parts[i].URI == "" {
			parts[i].URI = uri
		}
		if parts[i].MIME == "" {
			parts[i].MIME = mime
		}
	}
	return parts
}

// Get implements [ensemble.Library].
func (c *connection) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	return lifetime.During(ctx, c.alive, func(ctx context.Context) (*ensemble.Messages, error) {
		p, err := c.prompt(name)
		if err != nil {
			return nil, err
		}
		for given := range arguments {
			if !slices.ContainsFunc(p.Arguments, func(a ensemble.PromptArgument) bool { return a.Name == given }) {
				return nil, invoker.Invalid("/"+given, "The prompt %q has no argument %q.", name, textcut.Bytes(given, maxName))
			}
		}
		for _, a := range p.Arguments {
			if _, given := arguments[a.Name]; a.Required && !given {
				return nil, invoker.Invalid("/"+a.Name, "The prompt %q needs the argument %q.", name, a.Name)
			}
		}
		return p.Get(ctx, arguments)
	})
}

func (c *connection) prompt(name string) (*Prompt, error) {
	for i := range c.library.Prompts {
		if c.library.Prompts[i].Name == name {
			return &c.library.Prompts[i], nil
		}
	}
	return nil, invoker.Failf(invoker.NotFound, "There is no prompt %q.", textcut.Bytes(name, maxName))
}

// Complete implements [ensemble.Library].
func (c *connection) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	return lifetime.During(ctx, c.alive, func(ctx context.Context) (*ensemble.Completion, error) {
		complete, err := c.completer(request)
		if err != nil || complete == nil {
			return nil, err
		}
		return complete(ctx, request)
	})
}

func (c *connection) completer(request *ensemble.CompletionRequest) (func(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error), error) {
	if request.Prompt != "" {
		p, err := c.prompt(request.Prompt)
		if err != nil {
			return nil, err
		}
		return p.Complete, nil
	}
	for _, t := range c.library.Templates {
		if t.URI == request.Template {
			return t.Complete, nil
		}
	}
	return nil, invoker.Failf(invoker.NotFound, "There is no template %q.", textcut.Bytes(request.Template, maxName))
}

// Subscribe implements [ensemble.Library].
func (c *connection) Subscribe(ctx context.Context, uri string) error {
	_, err := lifetime.During(ctx, c.alive, func(context.Context) (struct{}, error) { return struct{}{}, c.checkSubscription(uri) })
	return err
}

func (c *connection) checkSubscription(uri string) error {
	switch {
	case c.library.Updates == nil:
		return invoker.Failf(invoker.InvalidArguments, "These resources do not report updates.")
	case slices.ContainsFunc(c.library.Resources, func(r Resource) bool { return r.URI == uri }),
		slices.ContainsFunc(c.library.Templates, func(t Template) bool { return t.matches(uri) }):
		return nil
	}
	return noResource(uri)
}

func (t *Template) matches(uri string) bool {
	_, ok := uritemplate.Match(t.URI, uri)
	return ok
}

// Unsubscribe implements [ensemble.Library]. The ensemble drops updates without a subscription.
func (c *connection) Unsubscribe(context.Context, string) error { return nil }
