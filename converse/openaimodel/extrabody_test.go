// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// A body has one tool_choice: that of ExtraBody, or none at a limit of the turn. OpenAI refuses
// bodies with two members of a name.
func TestOneToolChoice(t *testing.T) {
	for _, api := range []string{"responses", "chat"} {
		for final, want := range map[bool]string{false: `"tool_choice":"required"`, true: `"tool_choice":"none"`} {
			server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Fine."}}}}, nil)
			request := newRequest()
			request.NoInvocations = final
			request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
			options := openaimodel.Options{API: api, ExtraBody: map[string]any{"tool_choice": "required"}}
			if out := modeltest.Run(t.Context(), newModel(t, server.URL(), options), request); out.Err != nil {
				t.Fatal(out.Err)
			}
			if body := string(server.Requests()[0].Body); strings.Count(body, `"tool_choice"`) != 1 || !strings.Contains(body, want) {
				t.Errorf("%s, final is %t: %s", api, final, body)
			}
		}
	}
}

// A Go program may write a list of any type.
func TestIncludeOfExtraBody(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Fine."}}}}, nil)
	options := openaimodel.Options{API: "responses", ExtraBody: map[string]any{"include": []string{"web_search_call.action.sources"}}}
	if out := modeltest.Run(t.Context(), newModel(t, server.URL(), options), newRequest()); out.Err != nil {
		t.Fatal(out.Err)
	}
	const want = `"include":["reasoning.encrypted_content","web_search_call.action.sources"]`
	if body := string(server.Requests()[0].Body); !strings.Contains(body, want) {
		t.Error(body)
	}
	options.ExtraBody["include"] = "sources"
	if _, err := openaimodel.New("m", &options); err == nil || !strings.Contains(err.Error(), `ExtraBody["include"] is not a list`) {
		t.Error(err)
	}
}

// ExtraBody cannot replace the limit of an answer in Responses, which budgets lower.
func TestLimitOfExtraBody(t *testing.T) {
	extra := map[string]any{"max_output_tokens": 100}
	if _, err := openaimodel.New("m", &openaimodel.Options{API: "responses", ExtraBody: extra}); err == nil || !strings.Contains(err.Error(), "set MaxTokens") {
		t.Error(err)
	}
	if _, err := openaimodel.New("m", &openaimodel.Options{API: "chat", ExtraBody: extra}); err != nil {
		t.Error(err)
	}
}

// Tools of the model's server are offered for answers alone.
func TestHostedToolsAreForAnswers(t *testing.T) {
	for _, purpose := range purposes {
		server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Fine."}}}}, nil)
		request := newRequest()
		request.Purpose, request.Tools = purpose, &converse.Toolset{}
		options := openaimodel.Options{API: "responses", HostedTools: []map[string]any{{"type": "web_search"}}}
		if out := modeltest.Run(t.Context(), newModel(t, server.URL(), options), request); out.Err != nil {
			t.Fatal(out.Err)
		}
		if body := string(server.Requests()[0].Body); strings.Contains(body, "web_search") != purpose.Answers() {
			t.Errorf("%q: %s", purpose, body)
		}
	}
}
