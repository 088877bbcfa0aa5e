// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newRelay is a server whose tool relay sends the request to a model that it is given
// and returns the answer, in the way of the protocol that is spoken. Its tool can
// tells what the client declares.
func newRelay() *mcp.Server {
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
		if req.ProtocolVersion() >= protocols[0] {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": asked}, RequestState: "s"}, nil
		}
		return said(req.Session.CreateMessageWithTools(ctx, asked))
	})
	server.AddTool(&mcp.Tool{Name: "can", InputSchema: schema}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return said(req.ClientCapabilities().Sampling, nil)
	})
	return server
}

// relayVar makes this test binary a process of that server.
const relayVar = "MCPADAPTER_TEST_RELAY"

// TestRelayProcess is no test: it is the server of other tests.
func TestRelayProcess(t *testing.T) {
	if os.Getenv(relayVar) == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	if newRelay().Run(context.Background(), &mcp.StdioTransport{}) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// relayProcess runs the server of the SDK for Go.
func relayProcess(_ *testing.T, options mcpadapter.ClientOptions) ensemble.Source {
	return mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestRelayProcess$"}, &mcpadapter.StdioOptions{
		ClientOptions: options, Environment: map[string]string{relayVar: "1", "GORACE": "atexit_sleep_ms=0"},
	})
}

// relayScript runs the server of the SDK for TypeScript.
func relayScript(t *testing.T, options mcpadapter.ClientOptions) ensemble.Source {
	servers := realservers.Need(t)
	return stdioSource(servers.Script(filepath.Join("testdata", "sampling.mjs"), servers.Modules()), options, nil)
}

// relayed sends a request to a model through a tool of such a server, and returns what
// the server got to read.
func relayed(t *testing.T, c ensemble.Connection, name, request string) string {
	t.Helper()
	output, err := tool(t, c, name).Invoke(within(t), rawCall(request))
	if err != nil {
		return canister.TextOf(invoker.AsFailure(err).Content)
	}
	return canister.TextOf(output.Content)
}

const (
	weatherTool = `{"name":"weather","description":"Tells the weather.","inputSchema":{"type":"object","properties":{"city":{"type":"string"},"at":{"const":12345678901234567890}}}}`
	askWeather  = `{"role":"user","content":{"type":"text","text":"How is the weather?","annotations":{"priority":1},"_meta":{"from":"x"}}}`
	useWeather  = `{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"u1","name":"weather","input":{"city":"Oslo","at":12345678901234567890},"_meta":{"sig":"x"}},{"type":"tool_use","id":"u2","name":"weather","input":{}}]}`
	toldWeather = `{"role":"user","content":[{"type":"tool_result","toolUseId":"u2","content":[],"isError":true},{"type":"tool_result","toolUseId":"u1","content":[{"type":"text","text":"rain"},{"type":"resource_link","uri":"file:///r","name":"r"}],"structuredContent":{"c":1},"_meta":{"cache":"y"}}]}`
)

// plainModel is a model that knows nothing of tools.
func plainModel(asked chan<- *invoker.SampleRequest) func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
	return func(_ context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
		asked <- request
		return &invoker.SampleResult{Text: "I have no tools.", Model: "m", Finish: "endTurn"}, nil
	}
}

// A model that takes no tools is not asked with them, in whatever form they come, and
// the server is told (MCP 2025-11-25, schema § CreateMessageRequestParams).
func TestSamplingWithToolsIsRefused(t *testing.T) {
	requests := map[string]string{
		"tools":         `{"maxTokens":9,"messages":[` + askWeather + `],"tools":[` + weatherTool + `]}`,
		"a tool choice": `{"maxTokens":9,"messages":[` + askWeather + `],"toolChoice":{"mode":"none"}}`,
		"uses of tools": `{"maxTokens":9,"messages":[` + askWeather + `,` + useWeather + `,` + toldWeather + `]}`,
	}
	for name, source := range map[string]func(*testing.T, mcpadapter.ClientOptions) ensemble.Source{
		"go": relayProcess, "typescript": relayScript,
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan *invoker.SampleRequest, 8)
			c := open(t, source(t, mcpadapter.ClientOptions{Protocol: "2025-11-25", Sample: plainModel(asked)}))
			relay := map[string]string{"go": "relay", "typescript": "forced"}[name]
			for what, request := range requests {
				if got := relayed(t, c, relay, request); !strings.Contains(got, "-32602") || !strings.Contains(got, "sampling.tools") {
					t.Errorf("%s: the server got %s", what, got)
				}
			}
			if name == "typescript" { // which looks at what is declared
				if got := relayed(t, c, "relay", requests["tools"]); !strings.Contains(got, "Client does not support sampling tools capability") {
					t.Errorf("the capability is declared: %s", got)
				}
			}
			if got := relayed(t, c, relay, `{"maxTokens":9,"messages":[`+askWeather+`]}`); !strings.Contains(got, "I have no tools.") {
				t.Errorf("without tools the server got %s", got)
			}
			if len(asked) != 1 {
				t.Errorf("the model was asked %d times", len(asked))
			}
		})
	}
}
