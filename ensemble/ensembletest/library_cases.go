// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// libraryCases are the rules for connections that offer resources and prompts.
var libraryCases = []testCase{
	{"Library/list", "all resources, templates and prompts are listed as the server describes them", library, libraryList},
	{"Library/read", "a resource is read unchanged, text and bytes, also one of a template", library, libraryRead},
	{"Library/vanished", "a resource that does not exist is NOT_FOUND, and the connection still works", library, libraryVanished},
	{"Library/prompt", "Get returns the messages of a prompt, and fails without its required arguments", library, libraryPrompt},
	{"Library/complete", "completions depend on the prefix and on the other arguments", library, libraryComplete},
	{"Library/ended", "each request returns an error soon when its context, or the connection, has ended", library, libraryEnded},
	{"Library/updated", "updates are reported during a subscription, and changes of tools also after it has ended", update, libraryUpdated},
	{"Library/changed", "when the resources change, the connection reports it and the list is updated", libraryChange, libraryChanged},
	{"Library/lost", "requests of a lost connection are UNAVAILABLE, so that they are retried", libraryLoss, libraryLost},
}

// library opens a connection and returns its library.
func (s *subject) library(heard func(ensemble.News)) (ensemble.Connection, ensemble.Library) {
	s.Helper()
	connection := s.open()
	library, ok := connection.(ensemble.Library)
	if !ok {
		s.Fatal("the connection offers neither resources nor prompts")
	}
	library.Listen(heard)
	return connection, library
}

func deaf(ensemble.News) {}

func libraryList(s *subject) {
	_, library := s.library(deaf)
	for range 2 {
		resources, err := library.Resources(s.context())
		if err != nil || len(resources) != 2 {
			s.Fatalf("Resources: %+v, %v", resources, err)
		}
		slices.SortFunc(resources, func(a, b ensemble.Resource) int { return len(b.URI) - len(a.URI) })
		if r := resources[0]; r.URI != "test://greeting" || r.Name != "greeting" || r.Title != "Greeting" || r.MIME != "text/plain" {
			s.Errorf("a resource is %+v", r)
		}
		templates, err := library.Templates(s.context())
		if err != nil || len(templates) != 1 || templates[0].URI != "test://items/{id}" || templates[0].Name != "items" {
			s.Fatalf("Templates: %+v, %v", templates, err)
		}
		prompts, err := library.Prompts(s.context())
		if err != nil || len(prompts) != 1 {
			s.Fatalf("Prompts: %+v, %v", prompts, err)
		}
		want := []ensemble.PromptArgument{{Name: "subject", Required: true}, {Name: "tone"}}
		if p := prompts[0]; p.Name != "review" || p.Description != "Review something." || !reflect.DeepEqual(p.Arguments, want) {
			s.Errorf("the prompt is %+v", p)
		}
	}
}

func libraryRead(s *subject) {
	_, library := s.library(deaf)
	for _, want := range []canister.ResourceContent{
		{URI: "test://greeting", MIME: "text/plain", Text: "hello"},
		{URI: "test://bytes", MIME: "application/octet-stream", Blob: []byte{0, 1, 255}},
		{URI: "test://items/a1", Text: "item a1"},
	} {
		parts, err := library.Read(s.context(), want.URI)
		if err != nil || len(parts) != 1 {
			s.Fatalf("Read of %s: %+v, %v", want.URI, parts, err)
		}
		got := parts[0]
		got.Extra = canister.Extra{}
		if !reflect.DeepEqual(got, want) {
			s.Errorf("Read returned %+v, want %+v", got, want)
		}
	}
}

func libraryVanished(s *subject) {
	connection, library := s.library(deaf)
	_, err := library.Read(s.context(), "test://nothing/here")
	if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.NotFound {
		s.Errorf("Read of an unknown resource: %v, want NOT_FOUND", err)
	}
	s.echoes(s.tool(connection, "echo"), "the connection still works")
}

func libraryPrompt(s *subject) {
	connection, library := s.library(deaf)
	got, err := library.Get(s.context(), "review", map[string]string{"subject": "code"})
	if err != nil || len(got.Messages) != 2 {
		s.Fatalf("Get: %+v, %v", got, err)
	}
	for i, want := range []struct{ role, text string }{{"user", "Review code"}, {"assistant", "Which part?"}} {
		if m := got.Messages[i]; m.Role != want.role || canister.TextOf(m.Content) != want.text {
			s.Errorf("message %d is %+v", i, m)
		}
	}
	if _, err := library.Get(s.context(), "review", nil); err == nil {
		s.Error("Get without a required argument succeeded")
	}
	if _, err := library.Get(s.context(), "nothing", nil); err == nil {
		s.Error("Get of an unknown prompt succeeded")
	}
	s.echoes(s.tool(connection, "echo"), "the connection still works")
}

func libraryComplete(s *subject) {
	_, library := s.library(deaf)
	for _, test := range []struct {
		request ensemble.CompletionRequest
		want    []string
	}{
		{ensemble.CompletionRequest{Template: "test://items/{id}", Argument: "id", Value: "a"}, []string{"a1", "a2"}},
		{ensemble.CompletionRequest{Prompt: "review", Argument: "tone"}, []string{"kind", "stern"}},
		{ensemble.CompletionRequest{Prompt: "review", Argument: "tone", Others: map[string]string{"subject": "code"}}, []string{"stern"}},
		{ensemble.CompletionRequest{Prompt: "review", Argument: "tone", Value: "z"}, nil},
	} {
		got, err := library.Complete(s.context(), &test.request)
		if err != nil || got == nil || len(got.Values) != len(test.want) || len(test.want) > 0 && !slices.Equal(got.Values, test.want) {
			s.Errorf("Complete of %+v: %+v, %v", test.request, got, err)
		}
	}
}

// requests returns one request of each kind.
func requests(library ensemble.Library) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Resources": func(ctx context.Context) error { _, err := library.Resources(ctx); return err },
		"Templates": func(ctx context.Context) error { _, err := library.Templates(ctx); return err },
		"Prompts":   func(ctx context.Context) error { _, err := library.Prompts(ctx); return err },
		"Read":      func(ctx context.Context) error { _, err := library.Read(ctx, "test://greeting"); return err },
		"Get": func(ctx context.Context) error {
			_, err := library.Get(ctx, "review", map[string]string{"subject": "x"})
			return err
		},
		"Complete": func(ctx context.Context) error {
			_, err := library.Complete(ctx, &ensemble.CompletionRequest{Prompt: "review", Argument: "tone"})
			return err
		},
		"Subscribe": func(ctx context.Context) error { return library.Subscribe(ctx, "test://greeting") },
	}
}

func libraryEnded(s *subject) {
	connection, library := s.library(deaf)
	for name, request := range requests(library) {
		s.soon(name+" with a context that has ended", func() {
			if request(s.expired()) == nil {
				s.Errorf("%s succeeded with a context that has ended", name)
			}
		})
	}
	s.echoes(s.tool(connection, "echo"), "the connection still works")
	s.closes(connection)
	for name, request := range requests(library) {
		s.soon(name+" after Close", func() {
			if request(s.context()) == nil {
				s.Errorf("%s succeeded after Close", name)
			}
		})
	}
}

func libraryUpdated(s *subject) {
	news := make(chan ensemble.News, 16)
	connection, library := s.library(func(n ensemble.News) { news <- n })
	if err := library.Subscribe(s.context(), "test://greeting"); err != nil {
		s.Fatalf("Subscribe: %v", err)
	}
	s.Update()
	s.hears(news, ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"})
	if err := library.Unsubscribe(s.context(), "test://greeting"); err != nil {
		s.Errorf("Unsubscribe: %v", err)
	}
	if err := library.Subscribe(s.context(), "test://greeting"); err != nil {
		s.Fatalf("Subscribe again: %v", err)
	}
	s.Update()
	s.hears(news, ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"})
	if err := library.Unsubscribe(s.context(), "test://greeting"); err != nil {
		s.Errorf("Unsubscribe: %v", err)
	}
	if s.Change != nil {
		s.Change()
		s.changedTo(connection, "late")
	}
}

// changedTo waits until the connection reports that its tools changed, and lists one
// with this name.
func (s *subject) changedTo(connection ensemble.Connection, name string) {
	s.Helper()
	deadline := time.After(s.Patience)
	for {
		select {
		case <-connection.Changed():
		case <-deadline:
			s.Fatalf("the change of the tool %q was not reported within %v", name, s.Patience)
		}
		if s.tools(connection)[name] != nil {
			return
		}
	}
}

// hears waits for the given news.
func (s *subject) hears(news <-chan ensemble.News, want ensemble.News) {
	s.Helper()
	deadline := time.After(s.Patience)
	for {
		select {
		case got := <-news:
			if got == want {
				return
			}
		case <-deadline:
			s.Fatalf("%+v was not reported within %v", want, s.Patience)
		}
	}
}

func libraryChanged(s *subject) {
	news := make(chan ensemble.News, 16)
	_, library := s.library(func(n ensemble.News) { news <- n })
	s.ChangeLibrary()
	for {
		s.hears(news, ensemble.News{Kind: ensemble.ResourcesChanged})
		resources, err := library.Resources(s.context())
		if err != nil {
			s.Fatalf("Resources: %v", err)
		}
		if slices.ContainsFunc(resources, func(r ensemble.Resource) bool { return r.URI == "test://late" }) {
			return
		}
	}
}

func libraryLost(s *subject) {
	connection, library := s.library(deaf)
	s.Lose()
	s.await("Lost", connection.Lost())
	for name, request := range requests(library) {
		s.soon(name+" after a loss", func() {
			if failure := invoker.AsFailure(request(s.context())); failure == nil || failure.Code != invoker.Unavailable {
				s.Errorf("%s after a loss: %v, want UNAVAILABLE", name, failure)
			}
		})
	}
	_, again := s.library(deaf)
	if _, err := again.Read(s.context(), "test://greeting"); err != nil {
		s.Errorf("Read over a new connection: %v", err)
	}
}
