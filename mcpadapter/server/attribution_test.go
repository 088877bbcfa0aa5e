// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Roots are deprecated (SEP-2577), and clients have them still.

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a server asks for a call that its client gave up is not put to the next client,
// whose call is then the only one in flight: neither its person nor its roots.
func TestQuestionsOfACallThatWasGivenUp(t *testing.T) {
	behind := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	began, ask, got, leave := make(chan struct{}, 2), make(chan struct{}), make(chan string, 1), make(chan struct{})
	schema := json.RawMessage(`{"type":"object"}`)
	behind.AddTool(&mcp.Tool{Name: "abandoned", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began <- struct{}{}
		<-ctx.Done()
		began <- struct{}{}
		<-ask
		ctx = context.WithoutCancel(ctx)
		roots, err := req.Session.ListRoots(ctx, nil)
		if err != nil {
			got <- err.Error()
			return nil, err
		}
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?", RequestedSchema: schema})
		got <- fmt.Sprint(jsonOf(t, roots.Roots), " ", answer != nil && answer.Action == "accept")
		return nil, err
	})
	behind.AddTool(&mcp.Tool{Name: "next", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began <- struct{}{}
		<-leave
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	front := gateway(t, mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{
		Protocol: "2025-11-25", CallRoots: true, Roots: []mcpadapter.Root{{URI: "file:///srv"}},
	}))
	ann, bob := connectHTTP(t, front, answering(), "2025-11-25"), connectHTTP(t, front, answering(), "2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = ann.CallTool(ctx, &mcp.CallToolParams{Name: "abandoned"}) }()
	mcptest.Await(t, "the call of the first client", began)
	cancel()
	mcptest.Await(t, "that the server knows of it", began)
	done := make(chan error, 1)
	go func() {
		_, err := bob.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "next"})
		done <- err
	}()
	mcptest.Await(t, "the call of the second client", began)
	close(ask)
	if text := mcptest.Await(t, "the answers", got); text != `[{"uri":"file:///srv"}] false` {
		t.Errorf("the server gets %s", text)
	}
	close(leave)
	if err := mcptest.Await(t, "the end of the call", done); err != nil {
		t.Error(err)
	}
}

// When the server has answered a call that its client gave up, it may ask the next
// client at once.
func TestQuestionsAfterALateAnswer(t *testing.T) {
	behind := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	began, schema := make(chan struct{}, 2), json.RawMessage(`{"type":"object"}`)
	behind.AddTool(&mcp.Tool{Name: "abandoned", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began <- struct{}{}
		<-ctx.Done()
		began <- struct{}{}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	behind.AddTool(&mcp.Tool{Name: "next", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for { // the answer may be on its way
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Who?", RequestedSchema: schema})
			if err == nil && answer.Action == "accept" || ctx.Err() != nil {
				return &mcp.CallToolResult{Content: []mcp.Content{}}, ctx.Err()
			}
		}
	})
	front := gateway(t, mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{Protocol: "2025-11-25"}))
	ann, bob := connectHTTP(t, front, answering(), "2025-11-25"), connectHTTP(t, front, answering(), "2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = ann.CallTool(ctx, &mcp.CallToolParams{Name: "abandoned"}) }()
	mcptest.Await(t, "the call of the first client", began)
	cancel()
	mcptest.Await(t, "that the server knows of it", began)
	if result, err := bob.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "next"}); err != nil || result.IsError {
		t.Errorf("the second client is not asked: %s, %v", jsonOf(t, result), err)
	}
}

// The lines of the log of a server that several clients use reach none of them: one
// may be about the call before.
func TestLogsOfASharedServer(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		send := mcptest.StartStream(w)
		send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"about Ann's files"}}`)
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID))
		return true
	})
	front := gateway(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
	heard := make(chan string, 8)
	connect := func(name string) *mcp.ClientSession {
		session := connectHTTP(t, front, mcp.NewClient(&mcp.Implementation{Name: name}, &mcp.ClientOptions{
			LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) { heard <- name },
		}), "2025-11-25")
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Fatal(err)
		}
		return session
	}
	ann, bob := connect("ann"), connect("bob")
	for _, session := range []*mcp.ClientSession{ann, bob, ann} {
		if _, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "read"}); err != nil {
			t.Fatal(err)
		}
		if session == ann && len(s.Received("tools/call")) == 1 {
			mcptest.Await(t, "the line of the only client", heard)
		}
		if err := session.Ping(mcptest.Within(t), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(heard) > 0 {
		t.Errorf("%s hears a line of a server that both use", <-heard)
	}
}
