// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newLogin is a server of 2025-11-25 whose tool sends the person to a page. It
// reports that the page is complete before the answer and, when the function that
// the tool sends is called, after the result.
func newLogin() (server *mcp.Server, later <-chan func(id string)) {
	reports := make(chan func(string), 8)
	server = mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "login", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, id := range []string{"early", "late"} {
				if id == "early" { // read before the question
					_ = req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id})
				}
				if _, err := req.Session.Elicit(ctx,
					&mcp.ElicitParams{Mode: "url", Message: id, URL: "https://example.com/" + id, ElicitationID: id}); err != nil {
					return nil, err
				}
			}
			reports <- func(id string) {
				_ = req.Session.NotifyElicitationComplete(context.Background(), &mcp.ElicitationCompleteParams{ElicitationID: id})
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	return server, reports
}

// pageClient records the pages that it is sent to, by their ids, and their completions.
func pageClient() (client *mcp.Client, sent, heard chan string) {
	sent, heard = make(chan string, 8), make(chan string, 8)
	client = mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			sent <- r.Params.ElicitationID
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
		ElicitationCompleteHandler: func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
			heard <- r.Params.ElicitationID
		},
	})
	return client, sent, heard
}

// That a page is complete reaches the client that was sent there, under the id that
// it knows, and no other client.
func TestCompletedPagesGoThrough(t *testing.T) {
	for _, serving := range servings {
		t.Run(serving.name, func(t *testing.T) {
			behind, reports := newLogin()
			front := gateway(t, mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{Protocol: "2025-11-25"}))
			client, sent, heard := pageClient()
			other, _, overheard := pageClient()
			session := serving.connect(t, front, client, "2025-11-25")
			bystander := session
			if serving.name == "http" {
				bystander = serving.connect(t, front, other, "2025-11-25")
			}
			if _, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "login"}); err != nil {
				t.Fatal(err)
			}
			early, late := mcptest.Await(t, "the first page", sent), mcptest.Await(t, "the second page", sent)
			if got := mcptest.Await(t, "that the first is complete", heard); got != early {
				t.Errorf("complete is %q, want %q", got, early)
			}
			report := mcptest.Await(t, "the end of the tool", reports)
			report("nobody-asked")
			report("late")
			report("late") // again says nothing new
			if got := mcptest.Await(t, "that the second is complete", heard); got != late {
				t.Errorf("complete is %q, want %q", got, late)
			}
			if err := bystander.Ping(mcptest.Within(t), nil); err != nil {
				t.Fatal(err)
			}
			if len(heard)+len(overheard) > 0 {
				t.Errorf("%d more notifications, %d of them to the other client", len(heard)+len(overheard), len(overheard))
			}
		})
	}
}

// A client that is sent to very many pages pushes out no page of another one.
func TestPagesOfOtherClientsStay(t *testing.T) {
	behind, reports := newLogin()
	behind.AddTool(&mcp.Tool{Name: "flood", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 1001 {
				if _, err := req.Session.Elicit(ctx,
					&mcp.ElicitParams{Mode: "url", Message: "m", URL: "https://example.com", ElicitationID: fmt.Sprint("flood ", i)}); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
		})
	front := gateway(t, mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{Protocol: "2025-11-25"}))
	ann, sent, heard := pageClient()
	if _, err := connectStdio(t, front, ann, "2025-11-25").CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "login"}); err != nil {
		t.Fatal(err)
	}
	early, late := mcptest.Await(t, "the first page", sent), mcptest.Await(t, "the second page", sent)
	accept := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	bob := mcp.NewClient(&mcp.Implementation{Name: "bob"}, &mcp.ClientOptions{
		Capabilities:       &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: accept,
	})
	if result, err := connectStdio(t, front, bob, "2025-11-25").CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "flood"}); err != nil || result.IsError {
		t.Fatalf("%s, %v", jsonOf(t, result), err)
	}
	mcptest.Await(t, "the end of the tool", reports)("late")
	for _, want := range []string{early, late} {
		if got := mcptest.Await(t, "that a page is complete", heard); got != want {
			t.Errorf("complete is %q, want %q", got, want)
		}
	}
}

// Completed pages beyond a limit are forgotten, the oldest first, and those without a
// listener never displace those with one.
func TestCompletedPagesAreBounded(t *testing.T) {
	behind, reports := newLogin()
	var ask *invoker.ElicitRequest
	conn := mcptest.Open(t, mcpadapter.InMemory(behind,
		&mcpadapter.ClientOptions{Protocol: "2025-11-25", Elicit: func(_ context.Context, q *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			ask = q
			return &invoker.ElicitResult{Action: invoker.Accept}, nil
		}}))
	if _, err := mcptest.Tool(t, conn, "login").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 8)
	ask.OnCompletion(func() { heard <- "late" })
	report := mcptest.Await(t, "the end of the tool", reports)
	for i := range 150 {
		report(fmt.Sprint("other ", i))
	}
	report("late")
	if got := mcptest.Await(t, "the report", heard); got != "late" {
		t.Errorf("heard %q", got)
	}
}
