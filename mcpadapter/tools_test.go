// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lists answers tools/list with a page for each cursor.
func lists(pages map[string]string) func(http.ResponseWriter, *http.Request, mcptest.Message) bool {
	return func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/list" {
			return false
		}
		for cursor, page := range pages {
			if strings.Contains(string(m.Params), fmt.Sprintf(`"cursor":%q`, cursor)) {
				mcptest.Reply(w, m, page)
				return true
			}
		}
		mcptest.Reply(w, m, pages[""])
		return true
	}
}

func TestPages(t *testing.T) {
	c := openScripted(t, mcptest.NewScripted(t, lists(map[string]string{
		"":   `{"tools":[{"name":"a"}],"nextCursor":"p2"}`,
		"p2": `{"tools":[{"name":"b"}],"nextCursor":"p3"}`,
		"p3": `{"tools":[{"name":"c"}],"nextCursor":""}`,
	})))
	listing, err := c.List(mcptest.Within(t))
	if err != nil || len(listing.Invokers) != 3 {
		t.Errorf("got %d tools, %v", len(listing.Invokers), err)
	}
}

func TestEndlessPages(t *testing.T) {
	t.Parallel()
	loop := openScripted(t, mcptest.NewScripted(t, lists(map[string]string{
		"":   `{"tools":[],"nextCursor":"p2"}`,
		"p2": `{"tools":[],"nextCursor":"p3"}`,
		"p3": `{"tools":[],"nextCursor":"p2"}`,
	})))
	if _, err := loop.List(mcptest.Within(t)); mcptest.CodeOf(err) != invoker.Protocol || !strings.Contains(err.Error(), "a cursor was repeated") {
		t.Errorf("a list in circles: %v", err)
	}
	page := 0
	endless := openScripted(t, mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/list" {
			return false
		}
		page++
		mcptest.Reply(w, m, fmt.Sprintf(`{"tools":[%s{"name":"t"}],"nextCursor":"p%d"}`, strings.Repeat(`{"name":"t"},`, 999), page))
		return true
	}))
	if _, err := endless.List(mcptest.Within(t)); err == nil || !strings.Contains(err.Error(), "10000") {
		t.Errorf("a list without end: %v", err)
	}
}

// TestOddTools: one odd tool costs none of the others.
func TestOddTools(t *testing.T) {
	schema := `{"type":"object","properties":{"z":{"const":12345678901234567890},"a":{"type":"number","minimum":1.0}},` +
		`"$schema":"https://json-schema.org/draft/2020-12/schema"}`
	tools := lists(map[string]string{"": `{"tools":[
		{"name":"exact","title":"T","description":"D","inputSchema":` + schema + `,"outputSchema":{"type":"object"},"icons":[],"_meta":{"k":1},
		 "annotations":{"title":"not this","readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}},
		{"name":"no schema"},
		{"name":"null.schema/2","inputSchema":null},
		{"name":"broken schema","inputSchema":{"type":"object","properties":[]}},
		{"name":"bad output","outputSchema":{"type":7}},
		{"name":"task","execution":{"taskSupport":"required"}},
		{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}},
		{"name":7},
		null
	]}`})
	c := openScripted(t, mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "initialize" {
			mcptest.Reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}}`)
		}
		return m.Method == "initialize" || tools(w, r, m)
	}))
	listing, err := c.List(mcptest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	var offered, aside []string
	for _, i := range listing.Invokers {
		offered = append(offered, i.Definition().Name)
	}
	for _, a := range listing.Aside {
		if a.Reason == "" {
			t.Errorf("%q is set aside without a reason", a.Tool)
		}
		aside = append(aside, a.Tool)
	}
	if want := []string{"exact", "no schema", "null.schema/2", "bad output"}; !slices.Equal(offered, want) {
		t.Errorf("offered are %q, want %q", offered, want)
	}
	if want := []string{"broken schema", "task", "header", `{"name":7}`, "null"}; !slices.Equal(aside, want) {
		t.Errorf("set aside are %q, want %q", aside, want)
	}
	d := listing.Invokers[0].Definition()
	if string(d.InputSchema) != schema {
		t.Errorf("the schema is %s, want %s", d.InputSchema, schema)
	}
	if d.Title != "T" || d.Description != "D" || !d.Hints.ReadOnly || !d.Hints.Idempotent || d.Hints.MayDestroy() ||
		d.Hints.OpenWorld == nil || *d.Hints.OpenWorld {
		t.Errorf("the definition is %+v", d)
	}
	for _, name := range []string{"mcp/icons", "mcp/_meta", "mcp/annotations"} {
		if d.Metadata[name] == nil {
			t.Errorf("the metadata lacks %s", name)
		}
	}
	if got := string(listing.Invokers[1].Definition().InputSchema); got != `{"type":"object"}` {
		t.Errorf("a tool without a schema got %s", got)
	}
}

// A tool that asks for tasks at a server that has none (MCP 2025-11-25, basic/utilities/tasks §
// Tool-Level Negotiation) is called like any other.
func TestTasksWithoutCapability(t *testing.T) {
	for _, capabilities := range []string{`{"tools":{}}`, `{"tools":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`, `{"tools":{},"tasks":true}`} {
		s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
			switch m.Method {
			case "initialize":
				mcptest.Reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`}`)
			case "tools/list":
				mcptest.Reply(w, m, `{"tools":[{"name":"task","execution":{"taskSupport":"required"}}]}`)
			case "tools/call":
				mcptest.Reply(w, m, `{"content":[]}`)
			default:
				return false
			}
			return true
		})
		if _, err := mcptest.Tool(t, openScripted(t, s), "task").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
			t.Errorf("%s: %v", capabilities, err)
		}
	}
}

// TestCachedList: a server that allows its list to be cached for long
// (SEP-2549) is asked all the same.
func TestCachedList(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "cached", Version: "1"}, &mcp.ServerOptions{
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs = 3_600_000 },
	})
	addTool(t.Context(), server, suiteTool("first"))
	c := mcptest.Open(t, mcpadapter.InMemory(server, nil))
	mcptest.Tool(t, c, "first")
	addTool(t.Context(), server, suiteTool("second"))
	mcptest.Tool(t, c, "second")
}
