// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are served as well, with what the newest one deprecates.

package server_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newCurious serves a tool with three questions at once, and a prompt with one.
func newCurious(t *testing.T) *server.Server {
	t.Helper()
	curious := rawTool(t, invoker.Definition{Name: "curious"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		said, failures := make([]string, 3), make([]error, 3)
		var all sync.WaitGroup
		all.Go(func() { said[0], failures[0] = askName(ctx) })
		all.Go(func() {
			result, err := call.Sample(ctx,
				&invoker.SampleRequest{Key: "greeting", Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts("Greet.")}}})
			if failures[1] = err; err == nil {
				said[1] = result.Text
			}
		})
		all.Go(func() {
			roots, err := server.ClientRoots(ctx)
			if failures[2] = err; err == nil {
				said[2] = roots[0].URI
			}
		})
		all.Wait()
		for _, err := range failures {
			if err != nil {
				return invoker.Output{}, err
			}
		}
		return invoker.Output{Content: canister.Texts(strings.Join(said, " "))}, nil
	})
	library := local.Library{Prompts: []local.Prompt{{
		Prompt: ensemble.Prompt{Name: "greet"},
		Get: func(ctx context.Context, _ map[string]string) (*ensemble.Messages, error) {
			name, err := askName(ctx)
			if err != nil {
				return nil, err
			}
			return &ensemble.Messages{Messages: []ensemble.PromptMessage{{Role: "user", Content: canister.Texts("Greet " + name + ".")}}}, nil
		},
	}}}.Source(curious)
	roster, err := ensemble.NewRoster(ensemble.New("local", library, nil))
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(roster, &server.Options{OwnNames: true})
	t.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := roster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func askName(ctx context.Context) (string, error) {
	answer, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{
		Key: "name", Message: "Who?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
	})
	if err != nil {
		return "", err
	}
	name, _ := answer.Content["name"].(string)
	return name, nil
}

// answering is a client that has a person, a model and roots.
func answering() *mcp.Client {
	client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "Hello"}}, nil
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///home/ada"})
	return client
}

func TestQuestionsSideBySide(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		session := connect(newCurious(t), answering())
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "curious"})
		if err != nil || !strings.Contains(jsonOf(t, result.Content), "Ada Hello file:///home/ada") {
			t.Errorf("the tool: %s, %v", jsonOf(t, result), err)
		}
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"})
		if err != nil || !strings.Contains(jsonOf(t, prompt.Messages), "Greet Ada.") {
			t.Errorf("the prompt: %s, %v", jsonOf(t, prompt), err)
		}
	})
}

// On the wire of 2026-07-28 the questions of a call go out in one answer, by
// their keys; a client that knows them answers with its first request.
func TestQuestionsHaveKeys(t *testing.T) {
	web := httptest.NewServer(newCurious(t).Handler())
	defer web.Close()
	const name, greeting, roots = `"name":{"action":"accept","content":{"name":"Ben"}}`,
		`"greeting":{"role":"assistant","model":"m","content":{"type":"text","text":"Ahoy"}}`, `{"roots":[{"uri":"file:///ben"}]}`
	first := askCurious(t, web, `"inputResponses":{`+name+`,"nobody-asked":`+roots+`},`)
	var keys []string
	for key := range first.Result.InputRequests {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if len(keys) != 2 || keys[0] != "greeting" || first.Result.InputRequests[keys[1]].Method != "roots/list" {
		t.Fatalf("asked %v", first.Result.InputRequests)
	}
	last := askCurious(t, web, `"requestState":"`+first.Result.RequestState+`","inputResponses":{`+greeting+`,"`+keys[1]+`":`+roots+`},`)
	if len(last.Result.Content) != 1 || last.Result.Content[0].Text != "Ben Ahoy file:///ben" {
		t.Errorf("got %+v", last)
	}
}

type asked struct {
	Result struct {
		RequestState  string
		InputRequests map[string]struct{ Method string }
		Content       []struct{ Text string }
	}
	Error *jsonrpc.Error
}

func askCurious(t *testing.T, web *httptest.Server, members string) (message asked) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"curious","arguments":{},` + members + `"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}}}`
	_, _, answer := (&victim{Server: web}).post(t, body, nil)
	_, text, _ := strings.Cut(answer, "{") // of an event or of a body
	if err := json.NewDecoder(strings.NewReader("{" + text)).Decode(&message); err != nil || message.Error != nil {
		t.Fatalf("answer %s, %v", answer, err)
	}
	return message
}

// A request that needs what its client did not declare is refused in the words
// of 2026-07-28, and fails before.
func TestUndeclared(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		session := connect(newCurious(t), mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}))
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "curious"})
		_, promptErr := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"})
		if strings.HasSuffix(t.Name(), mcptest.Protocols[0]) {
			for _, err := range []error{err, promptErr} {
				if !isRPC(err, mcp.CodeMissingRequiredClientCapabilities) || !strings.Contains(err.Error(), "elicitation") {
					t.Errorf("err = %v", err)
				}
			}
			return
		}
		if err != nil || !result.IsError || !strings.Contains(jsonOf(t, result.StructuredContent), "UNAVAILABLE") || promptErr == nil {
			t.Errorf("result %s, %v; %v", jsonOf(t, result), err, promptErr)
		}
	})
}
