// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// role makes the test binary one of the servers.
const role = "CONSORT_BENCH_ROLE"

// startDelay is how long the server of the tools takes to start.
const startDelay = "CONSORT_BENCH_START_DELAY"

// toolCount is how many tools the server of the tools has, at least.
const toolCount = "CONSORT_BENCH_TOOLS"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "model":
		os.Exit(openaiserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "tools":
		serveTools()
	case "sdk":
		serveHTTP(sdkHandler())
	case "consort":
		serveHTTP(consortHandler())
	case "watched":
		serveHTTP(watchedHandler())
	default:
		os.Exit(m.Run())
	}
}

// answerBytes is the size of the tool's result.
const answerBytes = 1000

type waitInput struct {
	Milliseconds int `json:"milliseconds"`
}

// serveTools is an MCP server over stdio with the tools of the benchmarks.
func serveTools() {
	if delay, err := time.ParseDuration(os.Getenv(startDelay)); err == nil {
		time.Sleep(delay)
	}
	more, _ := strconv.Atoi(os.Getenv(toolCount))
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	text := strings.Repeat("0123456789", answerBytes/10)
	mcp.AddTool(server, &mcp.Tool{Name: "look", Description: "Look something up."},
		func(context.Context, *mcp.CallToolRequest, map[string]string) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "wait", Description: "Take a while."},
		func(ctx context.Context, _ *mcp.CallToolRequest, in waitInput) (*mcp.CallToolResult, any, error) {
			select {
			case <-time.After(time.Duration(in.Milliseconds) * time.Millisecond):
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil, nil
		})
	for i := range more {
		name, properties := fmt.Sprint("tool", i), object{}
		for _, p := range []string{"path", "pattern", "limit", "format"} {
			properties[p] = object{"type": "string", "description": "What the tool needs to know about the " + p + "."}
		}
		tool := &mcp.Tool{Name: name, Description: "Does what " + name + " does.", InputSchema: object{"type": "object", "properties": properties}}
		server.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	if server.Run(context.Background(), &mcp.StdioTransport{}) != nil {
		os.Exit(1)
	}
}

// toolsCommand is the command that runs serveTools, for clients that give
// their server an environment of its own.
func toolsCommand() (argv []string, environment map[string]string) {
	return []string{os.Args[0]}, map[string]string{role: "tools"}
}

// launchModel starts the model's server with a script.
func launchModel(tb testing.TB, script any) string {
	tb.Helper()
	text, err := json.Marshal(script)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "script.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-trust", "-script", path)
	cmd.Env = append(os.Environ(), role+"=model")
	process, err := openaiserver.Launch(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := process.Close(); err != nil {
			tb.Error(err)
		}
	})
	return process.URL
}

type object map[string]any

// turnOf is a script with some exchanges that call a tool, and an answer.
func turnOf(exchanges int, calls ...object) object {
	var steps []object
	for range exchanges - 1 {
		steps = append(steps, object{"message": object{"text": "I look it up.", "calls": calls}})
	}
	steps = append(steps, object{"message": object{"text": "That is all there is to say."}})
	return object{"steps": steps}
}
