// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	ctx := invoker.WithTrusted(t.Context(), append(parts.Trusted, token.Is("token-5558-5558"))...)
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

// While a tool works it tells no secret either.
func TestCallsAreCleanWhileTheyRun(t *testing.T) {
	const key = "key-5557-5557"
	inner, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(`{"type": "object"}`)},
		func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			call.Report(invoker.Progress{Message: key, Partial: canister.Texts(key)})
			call.Note(invoker.LogEntry{Level: "info", Logger: key, Data: json.RawMessage(`{"a": "` + key + `"}`)})
			asked, err := call.Ask(ctx, &invoker.ElicitRequest{Message: key, URL: "https://x/" + key, Schema: json.RawMessage(`{"title": "` + key + `"}`)})
			if err != nil || asked.Content["a"] != "b" {
				t.Errorf("the answer is %v, %v", asked, err)
			}
			told, err := call.Sample(ctx, &invoker.SampleRequest{System: key, Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts(key)}}})
			if err != nil || told.Text != "said" {
				t.Errorf("the model said %v, %v", told, err)
			}
			request := sampleWithTools(key)
			if _, err := call.Sample(ctx, request); err != nil || !reflect.DeepEqual(request, sampleWithTools(key)) {
				t.Errorf("the tool's own request is %+v, %v", request, err)
			}
			return invoker.Output{Content: canister.Texts(key)}, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	hear := func(one any) {
		form, _ := json.Marshal(one)
		heard = append(heard, string(form))
	}
	output, err := config.Clean(inner, func(text string) string { return strings.ReplaceAll(text, key, "[secret]") }).Invoke(t.Context(), &invoker.Call{
		Progress: func(p invoker.Progress) { hear(p) },
		Log:      func(entry invoker.LogEntry) { hear(entry) },
		Person: func(_ context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			hear(question)
			return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"a": "b"}}, nil
		},
		Model: func(_ context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
			hear(request)
			return &invoker.SampleResult{Text: "said"}, nil
		},
		ModelTools: true,
	})
	hear(output)
	if all := strings.Join(heard, "\n"); err != nil || len(heard) != 6 || strings.Contains(all, key) || strings.Count(all, "[secret]") != 21 {
		t.Errorf("%v, %d times in\n%s", err, strings.Count(all, "[secret]"), all)
	}
}

// sampleWithTools is a request to a model that has a secret in eleven places.
func sampleWithTools(key string) *invoker.SampleRequest {
	object := json.RawMessage(`{"title": "` + key + `"}`)
	metadata := canister.Fields{"m": json.RawMessage(`"` + key + `"`)}
	return &invoker.SampleRequest{
		Stop: []string{key}, Models: []string{key},
		Tools: []invoker.Definition{{Name: "t", Title: key, Description: key, InputSchema: object, OutputSchema: object, Metadata: metadata}},
		Messages: []invoker.SampleMessage{
			{Role: "assistant", ToolUses: []invoker.ToolUse{{ID: "u", Input: object, Metadata: metadata}}},
			{Role: "user", ToolResults: []invoker.ToolResult{{ToolUseID: "u", Content: canister.Texts(key), Metadata: metadata}}},
		},
	}
}
