// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
)

// TestServerSources runs the suite of sources over servers of this package with clients
// of package mcpadapter: the parts of a gateway of gateways.
func TestServerSources(t *testing.T) {
	t.Parallel()
	for _, protocol := range mcptest.Protocols {
		for _, stateless := range []bool{false, true} {
			if stateless && protocol != mcptest.Protocols[0] {
				continue // without sessions older clients are not notified
			}
			t.Run(protocol+"/stateless="+strconv.FormatBool(stateless), func(t *testing.T) {
				ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
					return servedHarness(t, mcpadapter.ClientOptions{Protocol: protocol}, stateless)
				})
			})
		}
	}
}

// servedHarness serves the tools of the suite over HTTP.
func servedHarness(t *testing.T, client mcpadapter.ClientOptions, stateless bool) ensembletest.Harness {
	source := ensembletest.NewSource(ensembletest.ServerTools()...)
	source.SetLibrary(ensembletest.ServerLibrary(new(local.Updates)))
	roster, err := ensemble.NewRoster(ensemble.New("suite", source, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := roster.Connect(t.Context()); err != nil { // nothing is reported about unused servers
		t.Fatal(err)
	}
	srv := server.New(roster, &server.Options{
		Name: "suite", Title: "The Suite", Version: "1.2", Instructions: "Call wait last.", OwnNames: true, Stateless: stateless,
	})
	listener := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is to end
		if err := srv.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		listener.CloseClientConnections()
		listener.Close()
		_ = roster.Close(context.Background())
	})
	return ensembletest.Harness{
		Library: true,
		Update:  func() { source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"}) },
		ChangeLibrary: func() {
			library := ensembletest.ServerLibrary(new(local.Updates))
			library.Resources = append(library.Resources, ensembletest.TextResource("test://late", "late"))
			source.SetLibrary(library)
		},
		Source: mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{ClientOptions: client}),
		Change: func() {
			late := ensembletest.Echo()
			late.Def.Name = "late"
			tools := ensembletest.ServerTools()
			source.SetTools(tools[0], tools[2], tools[3], late)
		},
	}
}

// A gateway of a gateway: the texts of a tool, a resource and a prompt pass through two
// servers unchanged, failures with their codes and pointers.
func TestGatewayOfAGateway(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","maximum":1.50}}}`)
	output := invoker.Output{Content: []canister.Content{
		canister.TextContent{Text: "said", Extra: canister.Extra{Metadata: canister.Fields{"mcp/annotations": json.RawMessage(`{"priority":0.5}`)}}},
		canister.ImageContent{Data: []byte{1, 2}, MIME: "image/png"},
		canister.StructuredContent{JSON: json.RawMessage(`{"z":1.50,"a":[]}`)},
	}}
	failure := &invoker.Failure{Code: invoker.Conflict, Message: "There is one already.", Pointer: "/n", Retryable: true, RetryAfter: 2 * time.Second}
	tools := []invoker.Invoker{
		rawTool(t, invoker.Definition{Name: "say", Title: "Say", Description: "Says.", InputSchema: schema},
			func(context.Context, *invoker.Call) (invoker.Output, error) { return output, nil }),
		says(t, "fail", invoker.Output{}, failure),
	}
	library := ensembletest.ServerLibrary(nil).Source(tools...)
	roster := mcptest.Roster(t, ensemble.New("first", library, nil))
	for _, protocol := range mcptest.Protocols {
		t.Run(protocol, func(t *testing.T) {
			last := roster
			for range 2 { // servers
				srv := server.New(last, &server.Options{OwnNames: true})
				listener := httptest.NewServer(srv.Handler())
				t.Cleanup(func() {
					if err := srv.Close(context.Background()); err != nil {
						t.Error(err)
					}
					listener.Close()
				})
				last = mcptest.Roster(t, ensemble.New("next",
					mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: protocol}}), nil))
			}
			catalog, err := last.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			say, ok := catalog.Find("next__say")
			if !ok || string(say.Definition().InputSchema) != string(schema) || say.Definition().Title != "Say" {
				t.Fatalf("the tool is %+v", say.Definition())
			}
			got, err := say.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{"n":1}`)})
			if err != nil || jsonOf(t, got.Content) != jsonOf(t, output.Content) {
				t.Errorf("got %s, %v", jsonOf(t, got.Content), err)
			}
			fail, _ := catalog.Find("next__fail")
			_, err = fail.Invoke(t.Context(), &invoker.Call{})
			var f *invoker.Failure
			if !errors.As(err, &f) || f.Code != failure.Code || f.Message != failure.Message || f.Pointer != failure.Pointer ||
				f.Retryable != failure.Retryable || f.RetryAfter != failure.RetryAfter {
				t.Errorf("got %+v", f)
			}
			part, err := last.ReadResource(t.Context(), "test://bytes")
			if err != nil || len(part) != 1 || !bytes.Equal(part[0].Blob, []byte{0, 1, 255}) {
				t.Errorf("got %v, %v", part, err)
			}
			if _, err := last.ReadResource(t.Context(), "test://nothing"); !errors.As(err, &f) || f.Code != invoker.NotFound {
				t.Errorf("a resource that is not there: %v", err)
			}
			prompt, err := last.GetPrompt(t.Context(), "next__review", map[string]string{"subject": "it"})
			if err != nil || len(prompt.Messages) != 2 || jsonOf(t, prompt.Messages[0].Content) != `[{"Text":"Review it","Metadata":null,"Unknown":null}]` {
				t.Errorf("got %s, %v", jsonOf(t, prompt), err)
			}
			completion, err := last.Complete(t.Context(),
				&ensemble.CompletionRequest{Prompt: "next__review", Argument: "tone", Others: map[string]string{"subject": "code"}})
			if err != nil || jsonOf(t, completion.Values) != `["stern"]` {
				t.Errorf("got %v, %v", completion, err)
			}
		})
	}
}
