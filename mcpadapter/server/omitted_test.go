// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// screenshotSchema requires properties that have defaults, like the schemas that zod
// generates for servers such as that of Playwright.
const screenshotSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
	`"type":{"default":"png","type":"string","enum":["png","jpeg"]},"scale":{"default":"css","type":"string","enum":["css","device"]},` +
	`"filename":{"type":"string"}},"required":["type","scale"],"additionalProperties":false}`

// A server decides about arguments that it has defaults for, called by a program
// and by a client of the server before it.
func TestOmittedArgumentsReachTheServer(t *testing.T) {
	behind := mcp.NewServer(&mcp.Implementation{Name: "browser", Version: "1"}, nil)
	behind.AddTool(&mcp.Tool{Name: "shoot", InputSchema: json.RawMessage(screenshotSchema)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "got " + string(req.Params.Arguments)}}}, nil
		})
	e := ensemble.New("browser", mcpadapter.InMemory(behind, nil), nil)
	roster, err := ensemble.NewRoster(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roster.Close(context.Background()) })
	tools, err := e.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v, %v", tools, err)
	}
	srv := server.New(roster, nil)
	t.Cleanup(func() { _ = srv.Close(context.Background()) })
	client := connectHTTP(t, srv, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil), "")
	for arguments, want := range map[string]string{
		`{}`: "got {}", `{"filename":"a.png"}`: `got {"filename":"a.png"}`, `{"scale":null}`: "got {}",
	} {
		output, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(arguments)})
		if text := canister.TextOf(output.Content); err != nil || text != want {
			t.Errorf("%s, called by a program: %q, %v", arguments, text, err)
		}
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "browser__shoot", Arguments: json.RawMessage(arguments)})
		if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != want {
			t.Errorf("%s, called by a client: %s, %v", arguments, jsonOf(t, result), err)
		}
	}
	if _, err := tools[0].Invoke(t.Context(),
		&invoker.Call{Arguments: json.RawMessage(`{"scale":"em"}`)}); invoker.AsFailure(err).Code != invoker.InvalidArguments {
		t.Errorf("a wrong value: %v", err)
	}
}
