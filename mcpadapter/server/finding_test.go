// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that finds tools lists two and the pinned ones, and calls the others through
// call_tool or by their names. The audit has the tools themselves.
func TestFinding(t *testing.T) {
	everyServing(t, func(t *testing.T, connect func(*server.Server, *mcp.Client) *mcp.ClientSession) {
		kept := &records{}
		srv := newServer(t, &server.Options{
			Name: "gateway", Audit: audit.New(kept, nil), Pinned: []string{"*__list"}, Tools: []invoker.Invoker{ensembletest.Returns("converse", "hello")},
			Finds: func(context.Context, string) bool { return true },
		}, ensembletest.Returns("list", "a list"), rawTool(t, invoker.Definition{
			Name: "paint", Description: "Changes the colour of a wall.", InputSchema: []byte(`{"type":"object","properties":{"colour":{"type":"string"}}}`),
		}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			return invoker.Output{Content: canister.Texts("painted " + string(call.Arguments))}, nil
		}))
		session := connect(srv, nil)
		listed, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range listed.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Equal(names, []string{"call_tool", "find_tools", "local__list"}) {
			t.Errorf("it lists %q", names)
		}
		if got := listed.Tools[1].Description; !strings.HasSuffix(got, "Call them with call_tool. There are tools of: gateway, local.") {
			t.Errorf("find_tools is described as %s", got)
		}
		for _, c := range []struct{ tool, arguments, want string }{
			{"find_tools", `{"query":"wall colors"}`, `{"name":"local__paint","description":"Changes the colour of a wall.","input_schema":{"type":"object","properties":{"colour":{"type":"string"}}}}` + "\n"},
			{
				"find_tools", `{"query":"xyzzy"}`,
				"No tool has one of these words. There are tools of gateway (1), local (2). Try other words, or the name of one of these.\n",
			},
			{"call_tool", `{"name":"local__paint","arguments":{"colour":"red"}}`, `painted {"colour":"red"}`},
			{"call_tool", `{"name":"local__paint","arguments":"{\"colour\":\"red\"}"}`, `painted {"colour":"red"}`},
			{"call_tool", `{"name":"local__list"}`, "a list"},
			{"call_tool", `{"name":"converse","arguments":{}}`, "hello"},
			{"local__paint", `{}`, "painted {}"},
			{
				"call_tool", `{"name":"find_tools","arguments":{"query":"list"}}`,
				`{"name":"local__list","description":"The scripted tool list.","input_schema":{"type":"object"}}` + "\n",
			},
			{"call_tool", `{"name":"local__paint","arguments":"{"}`, "The arguments must be"},
			{"call_tool", `{"name":"call_tool","arguments":{}}`, "The arguments must be"},
			{"call_tool", `{"name":"local__none","arguments":{}}`, `unknown tool "local__none"`},
		} {
			if got := answerOf(t, session, c.tool, c.arguments); got != c.want && !strings.Contains(got, c.want) {
				t.Errorf("%s %s:\n%s\nwant\n%s", c.tool, c.arguments, got, c.want)
			}
		}
		var audited []string
		for _, record := range kept.all() {
			audited = append(audited, record.Ensemble+"/"+record.Tool)
		}
		want := "gateway/find_tools gateway/find_tools local/paint local/paint local/list gateway/converse local/paint " +
			"gateway/find_tools gateway/call_tool gateway/call_tool /local__none"
		if got := strings.Join(audited, " "); got != want {
			t.Errorf("the audit has %s", got)
		}
	})
}

// answerOf calls a tool and returns the text of its result, or its error.
func answerOf(t *testing.T, session *mcp.ClientSession, tool, arguments string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err.Error()
	}
	return result.Content[0].(*mcp.TextContent).Text
}

// A search finds resources and prompts too, and says how they are read.
func TestItemsAreFound(t *testing.T) {
	s := openShop(t, true, func(o *server.Options) { o.Finds = func(context.Context, string) bool { return true } })
	here := httptest.NewServer(s.Handler())
	defer here.Close()
	got := s.send(t, here.URL, "", "tools/call", "find_tools", `"name":"find_tools","arguments":{"query":"plain"}`)
	for _, want := range []string{
		`{"name":"open__plain",`,
		`{"resource":"note:plain","server":"open","title":"note:plain","mime_type":"text/plain","read_with":"resources/read"}`,
		`{"resource_template":"page:plain/{id}","server":"open","title":"plain","read_with":"resources/read"}`,
		`{"prompt":"open__plain","server":"open","title":"plain","arguments":["x"],"get_with":"prompts/get"}`,
	} {
		if text, _ := json.Marshal(want); !strings.Contains(got, strings.Trim(string(text), `"`)) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}
