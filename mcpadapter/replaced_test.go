// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool that is replaced by one with the same name and another description is known once
// the roster reports a change, also through a gateway. The SDK reports it 10 ms later.
func TestReplacedToolIsKnown(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			overHTTP := func(name string, handler http.Handler) *ensemble.Ensemble {
				web := httptest.NewServer(handler)
				t.Cleanup(web.Close)
				return ensemble.New(name, mcpadapter.HTTP(web.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: protocol}}), nil)
			}
			behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
			describe := func(text string) {
				behind.AddTool(&mcp.Tool{Name: "read", Description: text, InputSchema: json.RawMessage(`{"type":"object"}`)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return &mcp.CallToolResult{}, nil
					})
			}
			describe("It reads.")
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return behind }, nil)
			near := mcptest.Roster(t, overHTTP("near", handler))
			gateway := server.New(near, nil)
			far := mcptest.Roster(t, overHTTP("far", gateway.Handler()))
			t.Cleanup(func() { _ = gateway.Close(context.Background()) })
			known := func(r *ensemble.Roster) string {
				catalog, err := r.Catalog(mcptest.Within(t))
				if err != nil || len(catalog.Tools()) != 1 {
					t.Fatalf("%v: %v", catalog, err)
				}
				return catalog.Tools()[0].Definition().Description
			}
			for i := range 3 {
				known(near) // connects
				known(far)
				ctx := mcptest.Within(t)
				news := map[*ensemble.Roster]iter.Seq[ensemble.News]{near: near.Watch(ctx), far: far.Watch(ctx)}
				want := fmt.Sprintf("It reads, %d.", i)
				describe(want)
				for _, roster := range []*ensemble.Roster{near, far} {
					for range news[roster] {
						if known(roster) == want {
							break
						}
					}
					if got := known(roster); got != want {
						t.Errorf("of %s: %q, want %q", roster.Ensembles()[0].Name(), got, want)
					}
				}
			}
		})
	}
}
