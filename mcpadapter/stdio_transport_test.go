// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// stdioVar makes this test binary a server of the SDK.
const stdioVar = "MCPADAPTER_TEST_STDIO"

// TestStdioServer is not a test: it is the server of other tests.
func TestStdioServer(t *testing.T) {
	if os.Getenv(stdioVar) == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type name struct{ Name string }
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in name) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "crash"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(3)
		return nil, nil, nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A session of the SDK's client and server over our transport, in both
// lifecycles of the protocol.
func TestSession(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			p, session := connect(t, version)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("protocol %s", got)
			}
			var calls sync.WaitGroup
			for range 20 {
				calls.Go(func() {
					result, err := session.CallTool(mcptest.Within(t),
						&mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"Name": strings.Repeat("é", 1<<15)}})
					if err != nil {
						t.Error(err)
					} else if text := result.Content[0].(*mcp.TextContent).Text; len(text) != len("hello ")+1<<16 {
						t.Errorf("answer of %d bytes", len(text))
					}
				})
			}
			calls.Wait()
			if err := p.close(mcptest.Within(t)); err != nil {
				t.Error(err)
			}
			if err := session.Close(); err != nil {
				t.Errorf("closing the session: %v", err)
			}
		})
	}
}

// The error of a call tells of the crash that ended it.
func TestSessionCrash(t *testing.T) {
	p, session := connect(t, "2025-11-25")
	_, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "crash"})
	if want := `server "sdk" exited: exit status 3; stderr: panic: out of cheese`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v, want in it %s", err, want)
	}
	if err := p.close(mcptest.Within(t)); err != nil {
		t.Error(err)
	}
	_ = session.Close()
}

// A server that never answers: Connect ends with its context, and nothing stays.
func TestConnectToDeafServer(t *testing.T) {
	mcptest.NoLeaks(t)
	p, err := startProcess(t.Context(), describe([]string{"sleep", "100"}, StdioOptions{}, ClientOptions{Server: "deaf", Logger: zap.NewNop()}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	begin := time.Now()
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, p, nil); err == nil {
		t.Error("connected to a deaf server")
	}
	p.kill()
	if took := time.Since(begin); took > mcptest.Patience/4 {
		t.Errorf("took %s, its context 200ms", took)
	}
	if p.err() != nil {
		t.Errorf("p.err() = %v, want nothing: it was us", p.err())
	}
}

func connect(t *testing.T, version string) (*stdioLink, *mcp.ClientSession) {
	t.Helper()
	mcptest.NoLeaks(t)
	command := describe([]string{os.Args[0], "-test.run=^TestStdioServer$"}, StdioOptions{
		Environment: map[string]string{stdioVar: "1", "GORACE": "atexit_sleep_ms=0"}, Grace: mcptest.Patience,
	}, ClientOptions{Server: "sdk", Logger: zap.NewNop()})
	p, err := startProcess(t.Context(), command, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(mcptest.Within(t), p, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return p, session
}

func TestConnectOnce(t *testing.T) {
	p, _ := connect(t, "2025-11-25")
	if _, err := p.Connect(t.Context()); err == nil {
		t.Error("a process was connected to twice")
	}
}
