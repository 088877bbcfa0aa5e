// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// relayVar makes this test binary a process of that server.
const relayVar = "MCPADAPTER_TEST_RELAY"

// TestRelayProcess is not a test: it is the server of other tests.
func TestRelayProcess(t *testing.T) {
	if os.Getenv(relayVar) == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	if mcptest.NewRelay().Run(context.Background(), &mcp.StdioTransport{}) != nil {
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

// relayed sends a request to a model through a tool of such a server, and returns the
// text that the server received.
func relayed(t *testing.T, c ensemble.Connection, name, request string) string {
	t.Helper()
	output, err := mcptest.Tool(t, c, name).Invoke(mcptest.Within(t), mcptest.RawCall(request))
	if err != nil {
		return canister.TextOf(invoker.AsFailure(err).Content)
	}
	return canister.TextOf(output.Content)
}

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
		"tools":         `{"maxTokens":9,"messages":[` + mcptest.AskWeather + `],"tools":[` + mcptest.WeatherTool + `]}`,
		"a tool choice": `{"maxTokens":9,"messages":[` + mcptest.AskWeather + `],"toolChoice":{"mode":"none"}}`,
		"uses of tools": `{"maxTokens":9,"messages":[` + mcptest.AskWeather + `,` + mcptest.UseWeather + `,` + mcptest.ToldWeather + `]}`,
	}
	for name, source := range map[string]func(*testing.T, mcpadapter.ClientOptions) ensemble.Source{
		"go": relayProcess, "typescript": relayScript,
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan *invoker.SampleRequest, 8)
			c := mcptest.Open(t, source(t, mcpadapter.ClientOptions{Protocol: "2025-11-25", Sample: plainModel(asked)}))
			relay := map[string]string{"go": "relay", "typescript": "forced"}[name]
			for what, request := range requests {
				if got := relayed(t, c, relay, request); !strings.Contains(got, "-32602") || !strings.Contains(got, "sampling.tools") {
					t.Errorf("%s: the server got %s", what, got)
				}
			}
			if name == "typescript" { // which checks the declared capabilities
				if got := relayed(t, c, "relay", requests["tools"]); !strings.Contains(got, "Client does not support sampling tools capability") {
					t.Errorf("the capability is declared: %s", got)
				}
			}
			if got := relayed(t, c, relay, `{"maxTokens":9,"messages":[`+mcptest.AskWeather+`]}`); !strings.Contains(got, "I have no tools.") {
				t.Errorf("without tools the server got %s", got)
			}
			if len(asked) != 1 {
				t.Errorf("the model was asked %d times", len(asked))
			}
		})
	}
}
