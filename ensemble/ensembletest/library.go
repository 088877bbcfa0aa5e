// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// The steps of a connection with a library.
const (
	ListResources Step = "list resources" // and templates
	ListPrompts   Step = "list prompts"
	Read          Step = "read"
	Get           Step = "get"
	Complete      Step = "complete"
	Subscribe     Step = "subscribe"
	Unsubscribe   Step = "unsubscribe"
)

var librarySteps = []Step{ListResources, ListPrompts, Read, Get, Complete, Subscribe, Unsubscribe}

// SetLibrary makes the source offer resources and prompts as a local ensemble would
// ([local.Library]), and its connections report that they changed. Connections
// that were opened before the first SetLibrary stay without a library.
func (s *Source) SetLibrary(options local.Library) {
	s.mu.Lock()
	s.library = &options
	s.mu.Unlock()
	s.Tell(ensemble.News{Kind: ensemble.ResourcesChanged})
	s.Tell(ensemble.News{Kind: ensemble.PromptsChanged})
}

// Tell makes all connections report the news.
func (s *Source) Tell(news ensemble.News) {
	s.mu.Lock()
	connections := slices.Clone(s.connections)
	s.mu.Unlock()
	for _, c := range connections {
		c.mu.Lock()
		heard := c.heard
		c.mu.Unlock()
		if heard != nil {
			heard(news)
		}
	}
}

// Subscribed returns the resources that open connections are subscribed to, sorted.
func (s *Source) Subscribed() []string {
	s.mu.Lock()
	connections := slices.Clone(s.connections)
	s.mu.Unlock()
	uris := []string{}
	for _, c := range connections {
		c.mu.Lock()
		if c.alive.Err() == nil {
			uris = append(uris, c.subscribed...)
		}
		c.mu.Unlock()
	}
	slices.Sort(uris)
	return uris
}

// librarian is a connection of a fake source with a library.
type librarian struct {
	pinger
	own *connection // the same
}

type pinger interface {
	ensemble.Connection
	ensemble.Pinger
}

var _ ensemble.Library = librarian{}

func (l librarian) Listen(heard func(ensemble.News)) {
	l.own.mu.Lock()
	defer l.own.mu.Unlock()
	l.own.heard = heard
}

// ask performs a step and then calls f with the current library.
func ask[T any](ctx context.Context, l librarian, step Step, f func(context.Context, ensemble.Library) (T, error)) (T, error) {
	var none T
	if err := l.own.usable(); err != nil {
		return none, invoker.Failf(invoker.Unavailable, "%w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.own.alive, cancel)()
	if err := l.own.source.step(ctx, step); err != nil {
		if ended := l.own.usable(); ended != nil {
			err = invoker.Failf(invoker.Unavailable, "%w", ended)
		}
		return none, err
	}
	l.own.source.mu.Lock()
	options := *l.own.source.library
	l.own.source.mu.Unlock()
	inner, err := options.Source().Open(ctx)
	if err != nil {
		return none, err
	}
	defer inner.Close(ctx)
	value, err := f(ctx, inner.(ensemble.Library))
	if ended := l.own.usable(); err != nil && ended != nil {
		err = invoker.Failf(invoker.Unavailable, "%w", ended)
	}
	return value, err
}

func (l librarian) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	return ask(ctx, l, ListResources, func(ctx context.Context, inner ensemble.Library) ([]ensemble.Resource, error) {
		return inner.Resources(ctx)
	})
}

func (l librarian) Templates(ctx context.Context) ([]ensemble.Template, error) {
	return ask(ctx, l, ListResources, func(ctx context.Context, inner ensemble.Library) ([]ensemble.Template, error) {
		return inner.Templates(ctx)
	})
}

func (l librarian) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	return ask(ctx, l, ListPrompts, func(ctx context.Context, inner ensemble.Library) ([]ensemble.Prompt, error) {
		return inner.Prompts(ctx)
	})
}

func (l librarian) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	return ask(ctx, l, Read, func(ctx context.Context, inner ensemble.Library) ([]canister.ResourceContent, error) {
		return inner.Read(ctx, uri)
	})
}

func (l librarian) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	return ask(ctx, l, Get, func(ctx context.Context, inner ensemble.Library) (*ensemble.Messages, error) {
		return inner.Get(ctx, name, arguments)
	})
}

func (l librarian) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	return ask(ctx, l, Complete, func(ctx context.Context, inner ensemble.Library) (*ensemble.Completion, error) {
		return inner.Complete(ctx, request)
	})
}

func (l librarian) Subscribe(ctx context.Context, uri string) error {
	_, err := ask(ctx, l, Subscribe, func(ctx context.Context, inner ensemble.Library) (struct{}, error) {
		return struct{}{}, inner.Subscribe(ctx, uri)
	})
	if err != nil {
		return err
	}
	l.own.mu.Lock()
	defer l.own.mu.Unlock()
	if slices.Contains(l.own.subscribed, uri) {
		return errors.New("there is a subscription already")
	}
	l.own.subscribed = append(l.own.subscribed, uri)
	return nil
}

func (l librarian) Unsubscribe(ctx context.Context, uri string) error {
	_, err := ask(ctx, l, Unsubscribe, func(ctx context.Context, inner ensemble.Library) (struct{}, error) {
		return struct{}{}, inner.Unsubscribe(ctx, uri)
	})
	l.own.mu.Lock()
	defer l.own.mu.Unlock()
	if err == nil && !slices.Contains(l.own.subscribed, uri) {
		return errors.New("there is no subscription")
	}
	l.own.subscribed = slices.DeleteFunc(l.own.subscribed, func(s string) bool { return s == uri })
	return err
}

// TextResource makes a resource that contains a text.
func TextResource(uri, text string) local.Resource {
	return local.Resource{
		Resource: ensemble.Resource{URI: uri, Name: uri, MIME: "text/plain"},
		Read: func(context.Context) ([]canister.ResourceContent, error) {
			return []canister.ResourceContent{{Text: text}}, nil
		},
	}
}

// ServerLibrary returns the resources and prompts that the server of a source must
// offer to [TestSource] if [Harness].Library is set. A server written in Go can serve
// them as they are; others must do the same:
//
//   - the resource test://greeting, called greeting, titled Greeting, of the
//     media type text/plain, with the text "hello";
//   - the resource test://bytes, called bytes, of the media type
//     application/octet-stream, with the bytes 0, 1, 255;
//   - the template test://items/{id}, called items, with the text "item " and
//     the id; completions of id are the values a1, a2 and b1 with the given prefix;
//   - the prompt review, described as "Review something.", with the required
//     argument subject and the optional tone: a user's text "Review " and the
//     subject, and an assistant's text "Which part?"; completions of tone are the
//     values kind and stern with the given prefix, and only stern if the subject
//     is given as code.
//
// It reports updates of test://greeting through updates, which may be nil.
func ServerLibrary(updates *local.Updates) local.Library {
	return local.Library{
		Resources: []local.Resource{
			{
				Resource: ensemble.Resource{URI: "test://greeting", Name: "greeting", Title: "Greeting", MIME: "text/plain"},
				Read: func(context.Context) ([]canister.ResourceContent, error) {
					return []canister.ResourceContent{{Text: "hello"}}, nil
				},
			},
			{
				Resource: ensemble.Resource{URI: "test://bytes", Name: "bytes", MIME: "application/octet-stream"},
				Read: func(context.Context) ([]canister.ResourceContent, error) {
					return []canister.ResourceContent{{Blob: []byte{0, 1, 255}}}, nil
				},
			},
		},
		Templates: []local.Template{{
			Template: ensemble.Template{URI: "test://items/{id}", Name: "items"},
			Read: func(_ context.Context, _ string, variables map[string]string) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "item " + variables["id"]}}, nil
			},
			Complete: completing(func(*ensemble.CompletionRequest) []string { return []string{"a1", "a2", "b1"} }),
		}},
		Prompts: []local.Prompt{{
			Prompt: ensemble.Prompt{Name: "review", Description: "Review something.", Arguments: []ensemble.PromptArgument{
				{Name: "subject", Required: true}, {Name: "tone"},
			}},
			Get: func(_ context.Context, arguments map[string]string) (*ensemble.Messages, error) {
				return &ensemble.Messages{Messages: []ensemble.PromptMessage{
					{Role: "user", Content: canister.Texts("Review " + arguments["subject"])},
					{Role: "assistant", Content: canister.Texts("Which part?")},
				}}, nil
			},
			Complete: completing(func(request *ensemble.CompletionRequest) []string {
				if request.Others["subject"] == "code" {
					return []string{"stern"}
				}
				return []string{"kind", "stern"}
			}),
		}},
		Updates: updates,
	}
}

// completing returns a function that proposes the values that have the request's
// prefix.
func completing(values func(*ensemble.CompletionRequest) []string) func(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	return func(_ context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
		found := &ensemble.Completion{}
		for _, value := range values(request) {
			if strings.HasPrefix(value, request.Value) {
				found.Values = append(found.Values, value)
			}
		}
		return found, nil
	}
}
