// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/uritemplate"
	"github.com/consort-go/consort/invoker"
)

// LocalLibrary is the resources and prompts of a local ensemble. Functions may be
// called concurrently, and must return soon after their context ends; the context
// carries the trusted values of the caller. Of a plain error, the caller sees only the
// code EXECUTION_FAILED; with [invoker.Failf] a function returns a message and another
// code, such as [invoker.NotFound].
type LocalLibrary struct {
	Resources []LocalResource
	Templates []LocalTemplate
	Prompts   []LocalPrompt
	// Updates reports that resources were updated. May be nil.
	Updates *Updates
}

// LocalResource is a resource that a Go function reads.
type LocalResource struct {
	Resource
	// Read returns the contents of the resource. A part without a URI gets the URI of
	// the resource, and a part without a media type the media type of the resource.
	Read func(ctx context.Context) ([]canister.ResourceContent, error)
}

// LocalTemplate is a family of resources that a Go function reads.
type LocalTemplate struct {
	Template
	// Read returns the contents of the resource with this URI; variables are the values
	// of the template's variables in it.
	Read func(ctx context.Context, uri string, variables map[string]string) ([]canister.ResourceContent, error)
	// Complete proposes values for a variable; nil proposes none.
	Complete func(ctx context.Context, request *CompletionRequest) (*Completion, error)
}

// LocalPrompt is a prompt that a Go function writes.
type LocalPrompt struct {
	Prompt
	// Get returns the messages. All required arguments are present, and only arguments
	// that the prompt declares.
	Get func(ctx context.Context, arguments map[string]string) (*Messages, error)
	// Complete proposes values for an argument; nil proposes none.
	Complete func(ctx context.Context, request *CompletionRequest) (*Completion, error)
}

// Updates notifies local ensembles of updated resources. The zero value is ready to
// use, and all methods may be called concurrently.
type Updates struct {
	mu        sync.Mutex
	listeners map[*localLibrary]func(News)
}

// Tell reports that the resource with this URI was updated. It does not block.
func (u *Updates) Tell(uri string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, heard := range u.listeners {
		heard(News{Kind: ResourceUpdated, URI: uri})
	}
}

func (u *Updates) set(c *localLibrary, heard func(News)) {
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
		u.listeners = make(map[*localLibrary]func(News))
	}
	u.listeners[c] = heard
}

// Source returns a source that offers the resources and prompts, and the invokers as
// tools, for [New]. If the library is invalid, Open fails.
func (l LocalLibrary) Source(invokers ...invoker.Invoker) Source {
	l.Resources = slices.Clone(l.Resources)
	l.Templates = slices.Clone(l.Templates)
	l.Prompts = slices.Clone(l.Prompts)
	return &librarySource{localSource(slices.Clone(invokers)), l, l.check()}
}

// check returns all errors in the library, joined.
func (l *LocalLibrary) check() error {
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
		wrong(t.URI != "" && err != nil, "template %q is not a URI template (RFC 6570): %w", shortened(t.URI), err)
		wrong(t.URI != "" && err == nil && t.Read == nil, "template %q has no function Read", t.URI)
	}
	for i, p := range l.Prompts {
		wrong(p.Name == "", "prompt %d has no name", i+1)
		wrong(p.Name != "" && p.Get == nil, "prompt %q has no function Get", p.Name)
	}
	return errors.Join(problems...)
}

type librarySource struct {
	tools   localSource
	library LocalLibrary
	problem error
}

// Open implements [Source].
func (s *librarySource) Open(ctx context.Context) (Connection, error) {
	if err := cmp.Or(s.problem, ctx.Err()); err != nil {
		return nil, err
	}
	return &localLibrary{*s.tools.connect(), &s.library}, nil
}

// localLibrary is a local connection with a library.
type localLibrary struct {
	localConnection
	library *LocalLibrary
}

// Close implements [Connection].
func (c *localLibrary) Close(ctx context.Context) error {
	c.library.Updates.set(c, nil)
	return c.localConnection.Close(ctx)
}

// Listen implements [Library].
func (c *localLibrary) Listen(heard func(News)) {
	if c.alive.Err() == nil {
		c.library.Updates.set(c, heard)
	}
}

// Resources implements [Library].
func (c *localLibrary) Resources(ctx context.Context) ([]Resource, error) {
	return described(ctx, c, c.library.Resources, func(r LocalResource) Resource { return r.Resource })
}

// Templates implements [Library].
func (c *localLibrary) Templates(ctx context.Context) ([]Template, error) {
	return described(ctx, c, c.library.Templates, func(t LocalTemplate) Template { return t.Template })
}

// Prompts implements [Library].
func (c *localLibrary) Prompts(ctx context.Context) ([]Prompt, error) {
	return described(ctx, c, c.library.Prompts, func(p LocalPrompt) Prompt { return p.Prompt })
}

// described returns the descriptions of all resources, templates or prompts.
func described[L, T any](ctx context.Context, c *localLibrary, all []L, of func(L) T) ([]T, error) {
	return during(ctx, c.alive, func(context.Context) ([]T, error) {
		var found []T
		for _, one := range all {
			found = append(found, of(one))
		}
		return found, nil
	})
}

// Read implements [Library].
func (c *localLibrary) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	return during(ctx, c.alive, func(ctx context.Context) ([]canister.ResourceContent, error) {
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
	return invoker.Failf(invoker.NotFound, "There is no resource %q.", shortened(uri))
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

// Get implements [Library].
func (c *localLibrary) Get(ctx context.Context, name string, arguments map[string]string) (*Messages, error) {
	return during(ctx, c.alive, func(ctx context.Context) (*Messages, error) {
		p, err := c.prompt(name)
		if err != nil {
			return nil, err
		}
		for given := range arguments {
			if !slices.ContainsFunc(p.Arguments, func(a PromptArgument) bool { return a.Name == given }) {
				return nil, invoker.Invalid("/"+given, "The prompt %q has no argument %q.", name, shortened(given))
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

func (c *localLibrary) prompt(name string) (*LocalPrompt, error) {
	for i := range c.library.Prompts {
		if c.library.Prompts[i].Name == name {
			return &c.library.Prompts[i], nil
		}
	}
	return nil, invoker.Failf(invoker.NotFound, "There is no prompt %q.", shortened(name))
}

// Complete implements [Library].
func (c *localLibrary) Complete(ctx context.Context, request *CompletionRequest) (*Completion, error) {
	return during(ctx, c.alive, func(ctx context.Context) (*Completion, error) {
		complete, err := c.completer(request)
		if err != nil || complete == nil {
			return nil, err
		}
		return complete(ctx, request)
	})
}

func (c *localLibrary) completer(request *CompletionRequest) (func(context.Context, *CompletionRequest) (*Completion, error), error) {
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
	return nil, invoker.Failf(invoker.NotFound, "There is no template %q.", shortened(request.Template))
}

// Subscribe implements [Library].
func (c *localLibrary) Subscribe(ctx context.Context, uri string) error {
	_, err := during(ctx, c.alive, func(context.Context) (struct{}, error) { return struct{}{}, c.checkSubscription(uri) })
	return err
}

func (c *localLibrary) checkSubscription(uri string) error {
	switch {
	case c.library.Updates == nil:
		return invoker.Failf(invoker.InvalidArguments, "These resources do not report updates.")
	case slices.ContainsFunc(c.library.Resources, func(r LocalResource) bool { return r.URI == uri }),
		slices.ContainsFunc(c.library.Templates, func(t LocalTemplate) bool { return t.matches(uri) }):
		return nil
	}
	return noResource(uri)
}

func (t *LocalTemplate) matches(uri string) bool {
	_, ok := uritemplate.Match(t.URI, uri)
	return ok
}

// Unsubscribe implements [Library]. The ensemble drops updates without a subscription.
func (c *localLibrary) Unsubscribe(context.Context, string) error { return nil }
