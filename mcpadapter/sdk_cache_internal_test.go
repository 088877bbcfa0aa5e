// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK keeps one result of each method, however many resources are read and however
// often lists change. Of tools it has the newest complete listing, and its last page.
func TestSDKCaches(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{PageSize: 3})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text"}}}, nil
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: "x:{+id}"}, read)
	add := func(name, header string) {
		schema := fmt.Sprintf(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":%q}}}`, header)
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, nil)
		server.AddResource(&mcp.Resource{Name: name, URI: "y:" + name}, read)
		server.AddPrompt(&mcp.Prompt{Name: name}, nil)
	}
	c := mcptest.Open(t, InMemory(server, nil)).(*connection)
	if got := c.Peer().Protocol; got != "MCP 2026-07-28" {
		t.Fatalf("the protocol is %s", got)
	}
	for i := range 20 {
		for j := range 5 {
			add(fmt.Sprintf("tool-%c%02d", 'a'+j, i), fmt.Sprint("Region", i)) // they move the cursors
		}
		if _, err := c.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, failed := c.Resources(t.Context())
		if _, err := c.Prompts(t.Context()); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		for j := range 20 {
			if _, err := c.Read(t.Context(), fmt.Sprintf("x:%d-%d", i, j)); err != nil {
				t.Fatal(err)
			}
		}
	}
	session := reflect.ValueOf(c.session).Elem()
	for _, name := range []string{"toolsCache", "promptsCache", "resourcesCache", "resourceTemplatesCache", "readResourceCache"} {
		most := 1
		if name == "toolsCache" {
			most = 2
		}
		if n := session.FieldByName(name).FieldByName("cachedValues").Len(); n > most {
			t.Errorf("%s has %d entries", name, n)
		}
	}
	known := 0
	tools := session.FieldByName("toolsCache").FieldByName("cachedValues").MapRange()
	for tools.Next() {
		known = max(known, tools.Value().Elem().FieldByName("result").Elem().FieldByName("Tools").Len())
	}
	if known != 100 {
		t.Errorf("the SDK knows %d tools", known)
	}
}
