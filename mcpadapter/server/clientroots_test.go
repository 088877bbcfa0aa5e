// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newRooted is a server whose tool tells the roots that it gets, and waits before
// it asks where it is told to.
func newRooted() (server *mcp.Server, waiting chan func()) {
	waiting = make(chan func(), 1)
	server = mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	tell := func(wait bool) mcp.ToolHandler {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if wait {
				goOn := make(chan struct{})
				waiting <- func() { close(goOn) }
				<-goOn
			}
			roots, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(roots.Roots)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, err
		}
	}
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "tell", InputSchema: schema}, tell(false))
	server.AddTool(&mcp.Tool{Name: "wait", InputSchema: schema}, tell(true))
	return server, waiting
}

// A server behind the gateway receives the roots of the client that makes the only
// running call, if it may; otherwise the configured ones.
func TestClientRootsGoThrough(t *testing.T) {
	const own, configured = `[{"uri":"file:///home/ada"}]`, `[{"uri":"file:///srv"}]`
	everyServing(t, func(t *testing.T, connect connector) {
		tells := func(options mcpadapter.ClientOptions, client *mcp.Client) string {
			behind, _ := newRooted()
			options.Protocol = "2025-11-25"
			session := connect(gateway(t, mcpadapter.InMemory(behind, &options)), client)
			result, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "tell"})
			if err != nil || result.IsError {
				t.Fatalf("%s, %v", jsonOf(t, result), err)
			}
			return result.Content[0].(*mcp.TextContent).Text
		}
		roots := []mcpadapter.Root{{URI: "file:///srv"}}
		if got := tells(mcpadapter.ClientOptions{CallRoots: true, Roots: roots}, answering()); got != own {
			t.Errorf("the server gets %s", got)
		}
		if got := tells(mcpadapter.ClientOptions{Roots: roots}, answering()); got != configured {
			t.Errorf("without CallRoots the server gets %s", got)
		}
		rootless := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
		if got := tells(mcpadapter.ClientOptions{CallRoots: true, Roots: roots}, rootless); got != configured {
			t.Errorf("for a client without roots the server gets %s", got)
		}
	})
}

// With two running calls it is unknown which of them the server asks for.
func TestClientRootsOfSeveralCalls(t *testing.T) {
	behind, waiting := newRooted()
	front := gateway(t, mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{Protocol: "2025-11-25", CallRoots: true}))
	session := connectHTTP(t, front, answering(), "2025-11-25")
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "wait"})
		done <- err
	}()
	goOn := mcptest.Await(t, "the other call", waiting)
	result, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "tell"})
	if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != `[]` {
		t.Errorf("the server gets %s, %v", jsonOf(t, result), err)
	}
	goOn()
	if err := mcptest.Await(t, "the end of the other call", done); err != nil {
		t.Error(err)
	}
}
