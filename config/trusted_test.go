// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A trusted value is written as it is, or as a table that says more of it.
func TestTrustedValuesAreRead(t *testing.T) {
	c, err := parse(`
[trusted]
user = "ada"
host = "env:HOST"
"user id" = 42
admin = true
low = -7
tenant = {value = '{"id": 7}', json = true}
token = {value = "env:DATABASE_TOKEN", secret = true}
number = {value = 7, secret = true}
[mcp.a]
url = "http://x"
trusted = {arguments = {user_id = "user id"}, headers = {X-User = "user"}}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		text         string
		json, secret bool
	}{
		"user": {"ada", false, false}, "host": {"example.host-5554", false, false}, "user id": {"42", true, false},
		"admin": {"true", true, false}, "low": {"-7", true, false}, "tenant": {`{"id": 7}`, true, false},
		"token": {"database-5553", false, true}, "number": {"7", true, true},
	}
	for name, is := range want {
		got := c.Trusted[name]
		if got.Value.Reveal() != is.text || got.JSON != is.json || got.Secret != is.secret {
			t.Errorf("%s is %q, JSON %v, secret %v", name, got.Value.Reveal(), got.JSON, got.Secret)
		}
	}
	if len(c.Trusted) != len(want) {
		t.Errorf("there are %d values", len(c.Trusted))
	}
	a := c.MCP["a"]
	if !maps.Equal(a.Fill, map[string]string{"user_id": "user id"}) || !maps.Equal(a.TrustedHeaders, map[string]string{"X-User": "user"}) {
		t.Errorf("passed on are %v and %v", a.Fill, a.TrustedHeaders)
	}
}

// indiscreet is an MCP server that tells all who ask it what it was sent.
func indiscreet(t *testing.T) *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "indiscreet", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{sent(r.Extra)}}}, nil
		},
	})
	add := func(name string, answer func(context.Context, *mcp.CallToolRequest, string) (*mcp.CallToolResult, error)) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type": "object", "properties": {"user_id": {"type": "string"}}}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return answer(ctx, r, sent(r.Extra))
			})
	}
	add("tell", func(ctx context.Context, r *mcp.CallToolRequest, all string) (*mcp.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: all})
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments) + all}, &mcp.ResourceLink{URI: "x:" + all, Name: all}},
			StructuredContent: map[string]string{all: all},
			Meta:              mcp.Meta{"said": all},
		}, nil
	})
	add("fail", func(_ context.Context, _ *mcp.CallToolRequest, all string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: all}}}, nil
	})
	add("break", func(_ context.Context, _ *mcp.CallToolRequest, all string) (*mcp.CallToolResult, error) {
		return nil, errors.New(all)
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if r.Params.URI == "x:broken" {
			return nil, errors.New(sent(r.Extra))
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: r.Params.URI, Text: sent(r.Extra)}, {URI: r.Params.URI, Blob: []byte(sent(r.Extra))},
		}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "x:all", Name: "all"}, read)
	server.AddResource(&mcp.Resource{URI: "x:broken", Name: "broken"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "say", Arguments: []*mcp.PromptArgument{{Name: "a"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{
				Description: sent(r.Extra), Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: sent(r.Extra)}}},
			}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	return web
}

// sent is what the headers of a request say.
func sent(extra *mcp.RequestExtra) string {
	return fmt.Sprintf("<%s %s %s>", extra.Header.Get("X-Key"), extra.Header.Get("X-Token"), extra.Header.Get("X-User"))
}

// What a server is given by trusted values reaches it, and what it says of the
// secrets among them, and of those in the file, comes back to nobody.
func TestServersArePassedTrustedValuesAndTellNone(t *testing.T) {
	c, err := parse(`
[trusted]
user = "ada"
[mcp.x]
url = "`+indiscreet(t).URL+`"
headers = {X-Key = "key-5557-5557"}
[mcp.x.trusted]
arguments = {user_id = "user", tenant_id = "tenant"}
headers = {X-User = "user", X-Token = "token"}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(context.Background())
	token := invoker.NewTrusted[string]("token").Secret()
	ctx := invoker.WithTrusted(t.Context(), append(parts.Trusted, token.Value("token-5558-5558"))...)
	roster := parts.Roster

	var mu sync.Mutex
	var said []string
	hear := func(what string, heard ...any) {
		mu.Lock()
		defer mu.Unlock()
		for _, one := range heard {
			form, _ := json.Marshal(one)
			said = append(said, fmt.Sprintf("%s: %+v %s", what, one, form))
		}
	}
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range catalog.Tools() {
		if schema := string(tool.Definition().InputSchema); strings.Contains(schema, "user_id") {
			t.Errorf("the schema of %s is %s", tool.Name(), schema)
		}
		output, err := tool.Invoke(ctx, &invoker.Call{Progress: func(p invoker.Progress) { hear("progress", p) }})
		hear(tool.Definition().Name, output, err, errors.Unwrap(err))
		if failure := invoker.AsFailure(err); failure != nil {
			hear(tool.Definition().Name, *failure)
		}
	}
	for _, uri := range []string{"x:all", "x:broken"} {
		parts, err := roster.ReadResource(ctx, uri)
		hear("read", parts, err)
		for _, part := range parts {
			hear("read", string(part.Blob))
		}
	}
	prompt, err := roster.GetPrompt(ctx, "x__say", nil)
	hear("prompt", *prompt, prompt.Canisters(), err)
	completion, err := roster.Complete(ctx, &ensemble.CompletionRequest{Prompt: "x__say", Argument: "a"})
	hear("completion", completion, err)

	all := strings.Join(said, "\n")
	for _, secret := range []string{"5557", "5558"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s shows in\n%s", secret, all)
		}
	}
	for _, trace := range []string{`"user_id":"ada"`, "tell: ", "fail: ", "break: ", "progress: ", "read: ", "prompt: ", "completion: "} {
		if !strings.Contains(strings.ReplaceAll(all, `\`, ""), trace) {
			t.Errorf("%q is nowhere in\n%s", trace, all)
		}
	}
	if told := strings.Count(all, "[secret] [secret] ada>"); told < 10 {
		t.Errorf("only %d times a secret was told:\n%s", told, all)
	}

	// Without its values a tool is not called.
	tool, _ := catalog.Find("x__tell")
	if _, err := tool.Invoke(t.Context(), &invoker.Call{}); invoker.AsFailure(err).Code != invoker.Unauthorized {
		t.Errorf("without trusted values: %v", err)
	}
	if _, err := tool.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"user_id": "eve"}`)}); invoker.AsFailure(err).Code != invoker.InvalidArguments {
		t.Errorf("with a forged value: %v", err)
	}
}
