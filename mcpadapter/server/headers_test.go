// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// headedTool makes a tool with an input schema.
func headedTool(t *testing.T, name, schema string) invoker.Invoker {
	return rawTool(t, invoker.Definition{Name: name, InputSchema: json.RawMessage(schema)}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(name)}, nil
	})
}

// invalidHeaders are schemas whose annotations break the rules of SEP-2243.
var invalidHeaders = map[string]string{
	"number":    `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
	"object":    `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
	"empty":     `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}`,
	"space":     `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A b"}}}`,
	"twice":     `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
	"no_string": `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":1}}}`,
}

// A tool whose annotations are not valid is not offered, and costs no other tool: neither in the
// first list, nor when the tools change, nor for callers that see a part.
func TestInvalidHeadersCostOneTool(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	valid := headedTool(t, "valid", `{"Type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`)
	tools := []invoker.Invoker{valid}
	for name, schema := range invalidHeaders {
		tools = append(tools, headedTool(t, name, schema))
	}
	source := ensembletest.NewSource(tools...)
	roster := mcptest.Roster(t, ensemble.New("e", source, nil))
	some := roster.Select(func(item ensemble.Item) bool { return item.Name != "hidden" })
	var part atomic.Pointer[ensemble.Selection]
	srv := server.New(roster, &server.Options{Logger: zap.New(core), OwnNames: true, Select: func(context.Context) *ensemble.Selection { return part.Load() }})
	t.Cleanup(func() { _ = srv.Close(context.Background()) })
	check := func(want ...string) {
		t.Helper()
		for _, selection := range []*ensemble.Selection{some, nil} {
			part.Store(selection)
			if got := namesListed(t, srv); !slices.Equal(got, want) {
				t.Errorf("the list has %q, want %q", got, want)
			}
		}
	}
	check("valid")
	refused := logs.FilterMessage("a tool is not offered: its x-mcp-header annotations break the rules of SEP-2243")
	if refused.Len() != len(invalidHeaders) {
		t.Errorf("the log has %v", logs.All())
	}
	changed := make(chan struct{}, 16)
	session := connectHTTP(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	}), mcptest.Protocols[1])
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	source.SetTools(append(tools, headedTool(t, "late", `{"type":"object"}`))...)
	soon(t, changed, "the client was not told")
	check("late", "valid")
}

// namesListed returns the names of the tools of a server.
func namesListed(t *testing.T, srv *server.Server) (names []string) {
	t.Helper()
	for _, text := range listed(t, srv, mcptest.Protocols[0]) {
		var tool struct {
			Name        string
			InputSchema map[string]any
		}
		if err := json.Unmarshal([]byte(text), &tool); err != nil || tool.InputSchema["type"] != "object" {
			t.Errorf("%v: %s", err, text)
		}
		names = append(names, tool.Name)
	}
	return names
}

// Requests may arrive while the tools with headers change.
func TestHeadedToolsChange(t *testing.T) {
	source := ensembletest.NewSource()
	roster := mcptest.Roster(t, ensemble.New("e", source, nil))
	srv := server.New(roster, &server.Options{OwnNames: true})
	t.Cleanup(func() { _ = srv.Close(context.Background()) })
	web := httptest.NewServer(srv.Handler())
	defer web.Close()
	list := func() string {
		_, answer := post(t, web.URL, "tools/list", rawMeta(""), http.Header{"Mcp-Protocol-Version": {"2026-07-28"}})
		return answer
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			list()
		}
	})
	for i := range 30 {
		source.SetTools(headedTool(t, "tool"+strconv.Itoa(i), `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`))
		for !strings.Contains(list(), "tool"+strconv.Itoa(i)) {
			continue
		}
	}
	cancel()
	asking.Wait()
}
