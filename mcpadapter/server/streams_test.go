// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connectStream connects a stream of a client of another server, such as one of MCP over gRPC.
func connectStream(t *testing.T, srv *server.Server, client string) *mcp.ClientSession {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx := access.WithOrigin(context.Background(), access.Origin{Client: client})
	go func() { _ = srv.Serve(ctx, toServer, fromServer) }()
	return connectClient(t, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, "2025-11-25")
}

// All streams of a client together have as many requests under way as one client may have,
// whatever the requests are.
func TestParallelOfStreams(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	hold := rawTool(t, invoker.Definition{Name: "hold"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		begun <- struct{}{}
		<-end
		return invoker.Output{Content: canister.Texts("held")}, nil
	})
	library := &local.Library{Resources: []local.Resource{{
		Resource: ensemble.Resource{URI: "test://quick", Name: "quick"},
		Read: func(context.Context) ([]canister.ResourceContent, error) {
			return []canister.ResourceContent{{Text: "read"}}, nil
		},
	}}}
	roster := mcptest.Roster(t, ensemble.New("local", library.Source(hold), nil))
	srv := server.New(roster, &server.Options{Parallel: 2, OwnNames: true})
	one, two, other := connectStream(t, srv, "ada"), connectStream(t, srv, "ada"), connectStream(t, srv, "ben")
	answers := make(chan string, 4)
	call := func(session *mcp.ClientSession) {
		result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "hold"})
		if err != nil {
			answers <- err.Error()
			return
		}
		answers <- result.Content[0].(*mcp.TextContent).Text
	}
	for _, session := range []*mcp.ClientSession{one, two} {
		go call(session)
		<-begun
	}
	for _, session := range []*mcp.ClientSession{one, two} {
		go call(session)
		select {
		case <-begun:
			t.Error("a third call runs")
		case text := <-answers:
			if !strings.Contains(text, "Too many calls") {
				t.Errorf("a third call: %s", text)
			}
		}
		_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://quick"})
		if err == nil || !strings.Contains(err.Error(), "too many requests") {
			t.Errorf("a resource is read: %v", err)
		}
		if err := session.Ping(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://quick"}); err != nil {
		t.Errorf("another client: %v", err)
	}
	close(end)
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
