// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Sampling is deprecated (SEP-2577), and servers use it still.

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The suite has no scenario of sampling with tools (MCP 2025-11-25, SEP-1577). This is
// one: the server gives the model a tool, runs it, and asks again with the result.
func TestSamplingWithTools(t *testing.T) {
	t.Setenv("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
	said := make(chan string, 2)
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}`)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			asked := &mcp.CreateMessageWithToolsParams{
				MaxTokens: 9, Tools: []*mcp.Tool{{Name: "add", InputSchema: schema}}, ToolChoice: &mcp.ToolChoice{Mode: "required"},
				Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "Add."}}}},
			}
			for range 2 {
				answer, err := req.Session.CreateMessageWithTools(ctx, asked)
				if err != nil {
					return nil, err
				}
				text, _ := json.Marshal(answer)
				said <- string(text)
				asked.ToolChoice = nil
				asked.Messages = append(asked.Messages, &mcp.SamplingMessageV2{Role: "assistant", Content: answer.Content},
					&mcp.SamplingMessageV2{
						Role: "user", Content: []mcp.Content{&mcp.ToolResultContent{ToolUseID: "use-1", Content: []mcp.Content{&mcp.TextContent{Text: "2"}}}},
					})
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	if err := run(t.Context(), []string{web.URL}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"content":{"type":"tool_use","id":"use-1","name":"add","input":{"a":1}},"model":"none","role":"assistant","stopReason":"toolUse"}`,
		`{"content":{"type":"text","text":"Hello."},"model":"none","role":"assistant","stopReason":"endTurn"}`,
	} {
		if len(said) == 0 {
			t.Fatal("the model was not asked")
		}
		if got := <-said; got != want {
			t.Errorf("the model said %s, want %s", got, want)
		}
	}
}
