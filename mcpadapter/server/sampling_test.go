// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are served as well, with what the newest one deprecates.

package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tooledClient is a client of the SDK whose model asks for two tools, and answers
// when it has their results.
func tooledClient(asked chan<- *mcp.CreateMessageWithToolsParams) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
		CreateMessageWithToolsHandler: func(_ context.Context, r *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			asked <- r.Params
			answer := &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", StopReason: "toolUse", Content: []mcp.Content{
				&mcp.TextContent{Text: "Let me see."},
				&mcp.ToolUseContent{ID: "u1", Name: "weather", Input: map[string]any{"city": "Oslo", "at": 7}, Meta: mcp.Meta{"sig": "x"}},
				&mcp.ToolUseContent{ID: "u2", Name: "weather", Input: map[string]any{}},
			}}
			if len(r.Params.Messages) > 1 {
				answer.StopReason, answer.Content = "endTurn", []mcp.Content{&mcp.TextContent{Text: "It rains."}}
			}
			return answer, nil
		},
	})
}

// relayGateway is a gateway before a server of that protocol that asks models with
// tools.
func relayGateway(t *testing.T, protocol string) *server.Server {
	return gateway(t, mcpadapter.InMemory(mcptest.NewRelay(), &mcpadapter.ClientOptions{Protocol: protocol, SampleCalls: true, SampleTools: true}))
}

// A server behind the gateway reaches the model of a client that declares sampling.tools,
// with its tools, calls and results.
func TestSamplingGoesThrough(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		for _, behind := range mcptest.Protocols {
			asked := make(chan *mcp.CreateMessageWithToolsParams, 2)
			session := connect(relayGateway(t, behind), tooledClient(asked))
			relay := func(request string) string {
				result, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "relay", Arguments: json.RawMessage(request)})
				if err != nil || result.IsError {
					t.Fatalf("%s: %s, %v", behind, jsonOf(t, result), err)
				}
				return result.Content[0].(*mcp.TextContent).Text
			}
			if got := relay(mcptest.FirstAsked); !strings.Contains(got, mcptest.UsesAnswer) || !strings.Contains(got, `"stopReason":"toolUse"`) {
				t.Errorf("%s: the server got %s", behind, got)
			}
			first := mcptest.Await(t, "the first request", asked)
			if first.ToolChoice == nil || first.ToolChoice.Mode != "required" || len(first.Tools) != 1 ||
				!strings.Contains(jsonOf(t, first.Tools[0]), `"description":"Tells the weather."`) ||
				!strings.Contains(jsonOf(t, first.Tools[0]), `"city":{"type":"string"}`) {
				t.Errorf("%s: the client was asked %s", behind, jsonOf(t, first))
			}
			if got := relay(mcptest.ThenAsked); !strings.Contains(got, "It rains.") {
				t.Errorf("%s: the server got %s", behind, got)
			}
			then := mcptest.Await(t, "the second request", asked)
			for i, want := range []string{mcptest.AskWeather, mcptest.UseWeather, mcptest.ToldWeather} {
				if got := jsonOf(t, then.Messages[i]); !mcptest.SameJSON(t, got, want) {
					t.Errorf("%s: message %d is %s", behind, i, got)
				}
			}
		}
	})
}

// A client that does not declare sampling.tools receives no requests with tools, and the
// server behind the gateway gets an error; one of the newest protocol knows it before it
// asks.
func TestSamplingStopsAtTheGateway(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		session := connect(relayGateway(t, mcptest.Protocols[1]), answering())
		result, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "relay", Arguments: json.RawMessage(mcptest.FirstAsked)})
		if err != nil || !strings.Contains(jsonOf(t, result), "-32602") || !strings.Contains(jsonOf(t, result), "sampling.tools") {
			t.Errorf("the server got %s, %v", jsonOf(t, result), err)
		}
		session = connect(relayGateway(t, mcptest.Protocols[0]), answering())
		result, err = session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "can"})
		if err != nil || result.Content[0].(*mcp.TextContent).Text != `{}` {
			t.Errorf("the server sees %s, %v", jsonOf(t, result), err)
		}
		result, err = session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "relay", Arguments: json.RawMessage(mcptest.FirstAsked)})
		if err == nil && !result.IsError {
			t.Errorf("the server got %s", jsonOf(t, result))
		}
	})
}

// A tool of the server itself is refused too, and the error names the missing capability.
func TestSamplingWithToolsIsUndeclared(t *testing.T) {
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		_, err := call.Sample(ctx, &invoker.SampleRequest{
			Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts("go")}},
			Tools:    []invoker.Definition{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		})
		return invoker.Output{}, err
	})
	everyServing(t, func(t *testing.T, connect connector) {
		result, err := connect(newServer(t, nil, ask), answering()).CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "local__ask"})
		if strings.HasSuffix(t.Name(), mcptest.Protocols[0]) {
			if !isRPC(err, mcp.CodeMissingRequiredClientCapabilities) || !strings.Contains(err.Error(), "sampling.tools") {
				t.Errorf("err = %v", err)
			}
		} else if err != nil || !result.IsError || !strings.Contains(jsonOf(t, result.StructuredContent), "UNAVAILABLE") {
			t.Errorf("result %s, %v", jsonOf(t, result), err)
		}
	})
}

// A client that calls tools although none were offered breaks the protocol.
func TestSamplingAnswersAreChecked(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		asked := make(chan *mcp.CreateMessageWithToolsParams, 1)
		session := connect(relayGateway(t, mcptest.Protocols[1]), tooledClient(asked))
		result, err := session.CallTool(mcptest.Within(t),
			&mcp.CallToolParams{Name: "relay", Arguments: json.RawMessage(`{"maxTokens":1,"messages":[` + mcptest.AskWeather + `]}`)})
		if err != nil || !result.IsError || !strings.Contains(jsonOf(t, result), "was offered no tools") {
			t.Errorf("the server got %s, %v", jsonOf(t, result), err)
		}
	})
}
