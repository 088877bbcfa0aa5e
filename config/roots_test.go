// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Roots are deprecated (SEP-2577), and servers ask for them still.

package config_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is told the roots that the file gives it, and can ask for none without.
func TestRoots(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "roots"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text := "none declared"
		if req.Session.InitializeParams().Capabilities.RootsV2 != nil {
			result, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, nil, err
			}
			text = ""
			for _, root := range result.Roots {
				text += root.Name + "=" + root.URI + ";"
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(listener.Close)
	for roots, want := range map[string]string{
		"":                    "none declared",
		"client_roots = true": "", // declared, and none outside of a served call
		`roots = [{path = "a b", name = "A"}, {path = "/c"}]`: "=file:///c;A=file:///home/ada/a%20b;",
	} {
		c, err := config.Parse("/home/ada/consort.toml",
			[]byte("[model]\nbase_url='http://x'\nname='m'\n[mcp.s]\nurl='"+listener.URL+"'\nprotocol='2025-11-25'\n"+roots+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := parts.Roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tool, _ := catalog.Find("s__roots")
		output, err := tool.Invoke(t.Context(), &invoker.Call{})
		if err != nil || canister.TextOf(output.Content) != want {
			t.Errorf("%q: told %q, %v", roots, canister.TextOf(output.Content), err)
		}
		if err := parts.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
