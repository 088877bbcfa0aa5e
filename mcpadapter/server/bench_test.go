// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkServer measures one call over HTTP, through this server and through
// the bare one of the SDK with a tool that does the same.
func BenchmarkServer(b *testing.B) {
	add, err := invoker.New("add", "Add.", func(_ context.Context, in addends) (sum, error) { return sum{in.A + in.B}, nil }, nil)
	if err != nil {
		b.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", add))
	if err != nil {
		b.Fatal(err)
	}
	defer roster.Close(context.Background())
	ours := server.New(roster, &server.Options{OwnNames: true})
	defer ours.Close(context.Background())
	part := roster.Select(func(item ensemble.Item) bool { // as slow as a hundred rules
		for i := range 100 {
			if item.Name == strconv.Itoa(i) {
				return false
			}
		}
		return true
	})
	selective := server.New(roster, &server.Options{OwnNames: true, Select: func(context.Context) *ensemble.Selection { return part }})
	defer selective.Close(context.Background())
	bare := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	mcp.AddTool(bare, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in addends) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	get := func(*http.Request) *mcp.Server { return bare }
	for _, srv := range []struct {
		name    string
		handler http.Handler
	}{
		{"consort", ours.Handler()},
		{"consort/selection", selective.Handler()},
		{"sdk/stateless", mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})},
	} {
		b.Run(srv.name, func(b *testing.B) {
			listener := httptest.NewServer(srv.handler)
			defer listener.Close()
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},` + meta + `}}`
			b.ReportAllocs()
			for b.Loop() {
				r, _ := http.NewRequest(http.MethodPost, listener.URL, strings.NewReader(body))
				for name, value := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "add",
				} {
					r.Header.Set(name, value)
				}
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				answer, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if !strings.Contains(string(answer), `{"sum":3}`) {
					b.Fatalf("got %s", answer)
				}
			}
		})
	}
}
