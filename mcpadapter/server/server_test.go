// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// servings are servers with a client of the SDK, one for each transport.
var servings = []struct {
	name    string
	connect func(t *testing.T, srv *server.Server, client *mcp.Client, protocol string) *mcp.ClientSession
}{
	{"http", connectHTTP},
	{"stdio", connectStdio},
}

func connectHTTP(t *testing.T, srv *server.Server, client *mcp.Client, protocol string) *mcp.ClientSession {
	listener := httptest.NewServer(srv.Handler())
	t.Cleanup(listener.Close)
	return connectClient(t, client, &mcp.StreamableClientTransport{Endpoint: listener.URL, MaxRetries: -1}, protocol)
}

func connectStdio(t *testing.T, srv *server.Server, client *mcp.Client, protocol string) *mcp.ClientSession {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), toServer, fromServer) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return connectClient(t, client, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, protocol)
}

func connectClient(t *testing.T, client *mcp.Client, transport mcp.Transport, protocol string) *mcp.ClientSession {
	ctx, cancel := context.WithTimeout(t.Context(), mcptest.Patience)
	defer cancel()
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// newServer serves tools until the test ends.
func newServer(t *testing.T, options *server.Options, tools ...invoker.Invoker) *server.Server {
	roster, err := ensemble.NewRoster(ensemble.Local("local", tools...))
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(roster, options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), mcptest.Patience)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := roster.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return srv
}

// everyServing runs a test over each transport in each protocol.
func everyServing(t *testing.T, test func(t *testing.T, connect func(*server.Server, *mcp.Client) *mcp.ClientSession)) {
	for _, serving := range servings {
		for _, protocol := range mcptest.Protocols {
			t.Run(serving.name+"/"+protocol, func(t *testing.T) {
				test(t, func(srv *server.Server, client *mcp.Client) *mcp.ClientSession {
					if client == nil {
						client = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
					}
					return serving.connect(t, srv, client, protocol)
				})
			})
		}
	}
}

// rawTool makes a tool of a function of JSON.
func rawTool(t *testing.T, definition invoker.Definition, fn func(context.Context, *invoker.Call) (invoker.Output, error)) invoker.Invoker {
	made, err := invoker.Raw(definition, fn, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func jsonOf(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type sum struct {
	Sum int `json:"sum"`
}

type addends struct {
	A int `json:"a"`
	B int `json:"b"`
}

func adder(t *testing.T) invoker.Invoker {
	add, err := invoker.New("add", "Add two numbers.", func(_ context.Context, in addends) (sum, error) { return sum{in.A + in.B}, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return add
}

func TestServerCallsTools(t *testing.T) {
	everyServing(t, func(t *testing.T, connect func(*server.Server, *mcp.Client) *mcp.ClientSession) {
		session := connect(newServer(t, nil, adder(t)), nil)
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "local__add" {
			t.Fatalf("tools %s, %v", jsonOf(t, tools), err)
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__add", Arguments: addends{2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonOf(t, result.StructuredContent) + jsonOf(t, result.Content); got != `{"sum":5}[{"type":"text","text":"{\"sum\":5}"}]` {
			t.Errorf("got %s", got)
		}
	})
}
