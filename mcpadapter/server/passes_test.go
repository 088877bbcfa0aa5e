// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are served as well, with what the newest one deprecates.

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gateway serves the tools, resources and prompts of another server under their own
// names.
func gateway(t *testing.T, behind ensemble.Source) *server.Server {
	srv := server.New(mcptest.Roster(t, ensemble.New("behind", behind, nil)), &server.Options{OwnNames: true})
	t.Cleanup(func() { _ = srv.Close(context.Background()) })
	return srv
}

// What a server logs during the only call that is in flight reaches the client of
// the gateway that made it.
func TestLogsGoThrough(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
			if m.Method != "tools/call" {
				return false
			}
			send := mcptest.StartStream(w)
			send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"not this"}}`)
			send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"part","data":{"a":1}}}`)
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID))
			return true
		})
		heard := make(chan string, 8)
		client := mcp.NewClient(&mcp.Implementation{Name: "c"},
			&mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
				heard <- fmt.Sprint(r.Params.Level, " ", r.Params.Logger, " ", r.Params.Data)
			}})
		session := connect(gateway(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}})), client)
		_ = session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}) // none in 2026-07-28
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "read", Meta: mcp.Meta{mcp.MetaKeyLogLevel: "info"}}); err != nil {
			t.Fatal(err)
		}
		if got := mcptest.Await(t, "a line of the log", heard); got != "warning part map[a:1]" {
			t.Errorf("the client heard %q", got)
		}
	})
}

// The fields of a form keep the order of the server that asks, for every protocol behind
// the gateway.
func TestFormsKeepTheirOrder(t *testing.T) {
	const form = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"color":{"type":"string"}},"required":["name"]}`
	for _, behind := range mcptest.Protocols {
		t.Run(behind, func(t *testing.T) {
			srv := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
			srv.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					question := &mcp.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: json.RawMessage(form)}
					if behind == "2025-11-25" {
						_, err := req.Session.Elicit(ctx, question)
						return &mcp.CallToolResult{Content: []mcp.Content{}}, err
					}
					if len(req.Params.InputResponses) == 0 {
						return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": question}}, nil
					}
					return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
				})
			var asked []string
			source := mcpadapter.InMemory(srv, &mcpadapter.ClientOptions{Protocol: behind})
			roster := mcptest.Roster(t, ensemble.New("behind", source, nil))
			catalog, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tool, _ := catalog.Find("behind__ask")
			call := mcptest.RawCall(`{}`)
			call.Person = func(_ context.Context, q *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				asked = append(asked, string(q.Schema))
				return &invoker.ElicitResult{Action: invoker.Decline}, nil
			}
			if _, err := tool.Invoke(mcptest.Within(t), call); err != nil {
				t.Fatal(err)
			}
			if len(asked) != 1 || !strings.Contains(asked[0], `"properties":{"name":{"type":"string"},"age":{"type":"integer"},"color":{"type":"string"}}`) {
				t.Errorf("asked %s", asked)
			}
		})
	}
}
