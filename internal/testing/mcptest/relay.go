// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// NewRelay returns a server of the SDK. Its tool relay sends its arguments to the model
// of the client as a request, in the form of the protocol that is used, and returns the
// answer. Its tool can returns the sampling capability that the client declares.
func NewRelay() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "relay", Version: "1"}, nil)
	said := func(v any, err error) (*mcp.CallToolResult, error) {
		text, _ := json.Marshal(v)
		if err != nil {
			text = []byte(err.Error())
			if rpc := new(jsonrpc.Error); errors.As(err, &rpc) {
				text = fmt.Appendf(nil, "%d: %s", rpc.Code, rpc.Message)
			}
		}
		return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
	}
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "relay", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asked := new(mcp.CreateMessageWithToolsParams)
		if err := json.Unmarshal(req.Params.Arguments, asked); err != nil {
			return nil, err
		}
		if answer := req.Params.InputResponses["q"]; answer != nil {
			return said(answer, nil)
		}
		if req.ProtocolVersion() >= "2026-07-28" {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": asked}, RequestState: "s"}, nil
		}
		return said(req.Session.CreateMessageWithTools(ctx, asked))
	})
	server.AddTool(&mcp.Tool{Name: "can", InputSchema: schema}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return said(req.ClientCapabilities().Sampling, nil)
	})
	return server
}

// A tool for a model, and the messages of an exchange in which the model uses it.
const (
	WeatherTool = `{"name":"weather","description":"Tells the weather.","inputSchema":{"type":"object","properties":{"city":{"type":"string"},"at":{"const":12345678901234567890}}}}`
	AskWeather  = `{"role":"user","content":{"type":"text","text":"How is the weather?","annotations":{"priority":1},"_meta":{"from":"x"}}}`
	UseWeather  = `{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"u1","name":"weather","input":{"city":"Oslo","at":12345678901234567890},"_meta":{"sig":"x"}},{"type":"tool_use","id":"u2","name":"weather","input":{}}]}`
	ToldWeather = `{"role":"user","content":[{"type":"tool_result","toolUseId":"u2","content":[],"isError":true},{"type":"tool_result","toolUseId":"u1","content":[{"type":"text","text":"rain"},{"type":"resource_link","uri":"file:///r","name":"r"}],"structuredContent":{"c":1},"_meta":{"cache":"y"}}]}`
)

// The two requests of that exchange, and the content of the answer to the first.
const (
	FirstAsked = `{"maxTokens":9,"messages":[` + AskWeather + `],"tools":[` + WeatherTool + `],"toolChoice":{"mode":"required"}}`
	ThenAsked  = `{"maxTokens":9,"messages":[` + AskWeather + `,` + UseWeather + `,` + ToldWeather + `],"tools":[` + WeatherTool + `]}`
	UsesAnswer = `"content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"u1","name":"weather","input":{"at":7,"city":"Oslo"},"_meta":{"sig":"x"}},{"type":"tool_use","id":"u2","name":"weather","input":{}}]`
)
