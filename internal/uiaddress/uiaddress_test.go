// SPDX-License-Identifier: Apache-2.0

package uiaddress_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/uiaddress"
	"github.com/consort-go/consort/invoker"
)

// fake is a server with a page and a tool that shows it.
type fake struct {
	ensemble.Connection
	ensemble.Library
	name       string
	subscribed []string
	heard      func(ensemble.News)
}

func (f *fake) Ping(context.Context) error { return nil }

func (f *fake) List(context.Context) (ensemble.Listing, error) {
	def := invoker.Definition{Name: "show", InputSchema: []byte(`{"type":"object"}`), Metadata: canister.Fields{
		"mcp/_meta": []byte(`{"other":1,"ui":{"resourceUri":"ui://app/main.html","visibility":["model"]},"ui/resourceUri":"ui://app/main.html"}`),
	}}
	tool, err := invoker.Raw(def, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{
			canister.LinkContent{URI: "ui://app/main.html"}, canister.ResourceContent{URI: "file:///x"}, canister.Text("ui://app/main.html"),
		}}, nil
	}, nil)
	return ensemble.Listing{Invokers: []invoker.Invoker{tool}}, err
}

func (f *fake) Resources(context.Context) ([]ensemble.Resource, error) {
	return []ensemble.Resource{{URI: "ui://app/main.html"}, {URI: "file:///x"}}, nil
}

func (f *fake) Templates(context.Context) ([]ensemble.Template, error) {
	return []ensemble.Template{{URI: "ui://app/{page}"}}, nil
}

func (f *fake) Read(_ context.Context, uri string) ([]canister.ResourceContent, error) {
	if uri != "ui://app/main.html" {
		return nil, invoker.Failf(invoker.NotFound, "no page %s", uri)
	}
	return []canister.ResourceContent{{URI: uri, Text: "the page of " + f.name}}, nil
}

func (f *fake) Subscribe(_ context.Context, uri string) error {
	f.subscribed = append(f.subscribed, uri)
	return nil
}
func (f *fake) Unsubscribe(context.Context, string) error { return nil }

func (f *fake) Complete(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	return &ensemble.Completion{}, nil
}

func (f *fake) Listen(heard func(ensemble.News)) { f.heard = heard }

type sourceFunc func(context.Context) (ensemble.Connection, error)

func (f sourceFunc) Open(ctx context.Context) (ensemble.Connection, error) { return f(ctx) }

func open(t *testing.T, f *fake) (ensemble.Connection, ensemble.Library) {
	t.Helper()
	c, err := uiaddress.Source(f.name, sourceFunc(func(context.Context) (ensemble.Connection, error) { return f, nil })).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, c.(ensemble.Library)
}

// Two servers with pages of the same address offer two pages, each with its tool.
func TestPagesDoNotCollide(t *testing.T) {
	for name, prefix := range map[string]string{"one": "ui://one/", "two": "ui://two/", "a b/c": "ui://a%20b%2Fc/"} {
		f := &fake{name: name}
		c, library := open(t, f)
		page := prefix + "app/main.html"
		resources, _ := library.Resources(t.Context())
		if resources[0].URI != page || resources[1].URI != "file:///x" {
			t.Errorf("%s: %v", name, resources)
		}
		if templates, _ := library.Templates(t.Context()); templates[0].URI != prefix+"app/{page}" {
			t.Errorf("%s: %v", name, templates)
		}
		parts, err := library.Read(t.Context(), page)
		if err != nil || parts[0].URI != page || parts[0].Text != "the page of "+name {
			t.Errorf("%s: %v, %v", name, parts, err)
		}
		if _, err := library.Read(t.Context(), "ui://other/app/main.html"); err == nil {
			t.Errorf("%s reads the page of another server", name)
		}
		for _, other := range []string{"ui://app/main.html", "UI://app/main.html", "ui:app", "u\ti://app/main.html", "%75i://app/main.html"} {
			_, reading := library.Read(t.Context(), other)
			_, completing := library.Complete(t.Context(), &ensemble.CompletionRequest{Template: other})
			for _, err := range []error{reading, completing, library.Subscribe(t.Context(), other), library.Unsubscribe(t.Context(), other)} {
				if err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
					t.Errorf("%s knows %q: %v", name, other, err)
				}
			}
		}
		if err := library.Subscribe(t.Context(), page); err != nil || f.subscribed[0] != "ui://app/main.html" {
			t.Errorf("%s: %v, %v", name, f.subscribed, err)
		}
		var heard ensemble.News
		library.Listen(func(news ensemble.News) { heard = news })
		f.heard(ensemble.News{URI: "ui://app/main.html"})
		if heard.URI != page {
			t.Errorf("%s: %+v", name, heard)
		}
		listing, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tool := listing.Invokers[0]
		if meta := string(tool.Definition().Metadata["mcp/_meta"]); strings.Count(meta, `"`+page+`"`) != 2 || !strings.Contains(meta,
			`"other":1`) || !strings.Contains(meta, "visibility") {
			t.Errorf("%s: %s", name, meta)
		}
		output, err := tool.Invoke(t.Context(), &invoker.Call{})
		if err != nil || output.Content[0].(canister.LinkContent).URI != page || output.Content[1].(canister.ResourceContent).URI != "file:///x" ||
			output.Content[2].(canister.TextContent).Text != "ui://app/main.html" {
			t.Errorf("%s: %v, %v", name, output, err)
		}
	}
}

// A connection without resources stays as it is.
func TestOtherConnections(t *testing.T) {
	inner := ensembletest.NewSource()
	c, err := uiaddress.Source("one", inner).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
