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
	"escaped":   `{"type":"object","properties":{"a":{"type":"number","x\u002dmcp-header":"A"}}}`,
	"long":      `{"type":"object","properties":{"` + strings.Repeat("long", 10_000) + `":{"type":"number","x-mcp-header":"A"}}}`,
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
	for _, line := range refused.All() {
		if reason, _ := line.ContextMap()["error"].(string); reason == "" || len(reason) > 2000 {
			t.Errorf("the log has a reason of %d bytes", len(reason))
		}
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
	handler := srv.Handler()
	ctx, cancel := context.WithTimeout(t.Context(), mcptest.Patience)
	list := func() string {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+rawMeta("")+`}}`))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() {
		for ctx.Err() == nil {
			list()
		}
	})
	for i := range 30 {
		name, answer := "tool"+strconv.Itoa(i), ""
		source.SetTools(headedTool(t, name, `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`))
		for !strings.Contains(answer, name) {
			if ctx.Err() != nil {
				t.Fatalf("%s is not listed: %s", name, answer)
			}
			answer = list()
		}
	}
}
