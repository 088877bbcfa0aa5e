// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/invoker"
)

// purposes are all that a request can have.
var purposes = []converse.Purpose{"", converse.PurposeAnswer, converse.PurposeFinalAnswer, converse.PurposeSummary, converse.PurposeSampling}

// Each option goes with the requests that it belongs to, and with no others. An
// option given as a member of ExtraBody is no different.
func TestOptionsBelongToPurposes(t *testing.T) {
	const everything, answers = "answer final_answer summary sampling", "answer final_answer"
	for _, test := range []struct {
		member  string
		options openaimodel.Options
		value   any // of the member in ExtraBody; nil if it is no option
		goes    string
	}{
		{
			"response_format", openaimodel.Options{ResponseFormat: &openaimodel.ResponseFormat{
				Schema: json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`), Strict: true,
			}}, map[string]any{"type": "json_object"}, answers,
		},
		{"stop", openaimodel.Options{Stop: []string{"<"}}, "x", answers},
		{"tool_choice", openaimodel.Options{ToolChoice: "required"}, "x", answers},
		{"parallel_tool_calls", openaimodel.Options{ParallelToolCalls: new(false)}, true, answers},
		{"guided_json", openaimodel.Options{}, map[string]any{}, answers},
		{"grammar", openaimodel.Options{}, "x", answers},
		{"modalities", openaimodel.Options{}, "x", answers},
		{"reasoning_effort", openaimodel.Options{ReasoningEffort: "low"}, "x", everything},
		{"temperature", openaimodel.Options{Temperature: new(1.5)}, 1, everything},
		{"top_p", openaimodel.Options{TopP: new(0.5)}, 1, everything},
		{"max_tokens", openaimodel.Options{MaxTokens: 50}, 50, everything},
		{"max_completion_tokens", openaimodel.Options{MaxTokens: 50, MaxTokensField: "max_completion_tokens"}, 50, everything},
		{"seed", openaimodel.Options{Seed: new(int64(7))}, 7, everything},
		{"stream_options", openaimodel.Options{}, map[string]any{}, everything},
		{"user", openaimodel.Options{}, "ada", everything},
		{"metadata", openaimodel.Options{}, map[string]any{"team": "x"}, everything},
		{"store", openaimodel.Options{}, false, everything},
		{"chat_template_kwargs", openaimodel.Options{}, map[string]any{"thinking": false}, everything},
	} {
		extra := openaimodel.Options{ExtraBody: map[string]any{test.member: test.value}}
		for _, options := range []openaimodel.Options{test.options, extra} {
			for _, purpose := range purposes {
				wanted := strings.Contains(" "+test.goes+" ", " "+string(purpose)+" ") || purpose == ""
				body := bodyFor(t, options, purpose)
				_, sent := body[test.member]
				given := options.ExtraBody != nil || test.member == "stream_options" || hasOption(test.options)
				if given && sent != wanted {
					t.Errorf("%s (extra: %t) with the purpose %q: sent is %t, want %t", test.member, options.ExtraBody != nil, purpose, sent, wanted)
				}
			}
		}
	}
}

// hasOption reports whether any of the options of the test above is set.
func hasOption(o openaimodel.Options) bool {
	return !reflect.DeepEqual(o, openaimodel.Options{})
}

// bodyFor returns the body of a request of a purpose, with a tool on offer, as a
// server gets it that takes everything.
func bodyFor(t *testing.T, options openaimodel.Options, purpose converse.Purpose) (body map[string]json.RawMessage) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"blue"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	options.BaseURL = server.URL
	model, err := openaimodel.New("test", &options)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	request := &converse.Request{
		Purpose: purpose,
		History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go")}},
		Tools:   &converse.Toolset{Definitions: []*invoker.Definition{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}}},
		NewID:   func() string { return "id" },
	}
	for _, err := range model.Exchange(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return body
}

// What a tool asks for itself stands in place of the model's own, also of those
// options that do not go with its request.
func TestSamplingHasItsOwnStop(t *testing.T) {
	h := newHarness(t, []conversetest.Line{{Text: "blue"}}, openaimodel.Options{Stop: []string{"<"}})
	request := &converse.Request{
		Purpose: converse.PurposeSampling, Stop: []string{"own"},
		History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go, in json")}},
		NewID:   func() string { return "id" },
	}
	for _, err := range h.Model.Exchange(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(h.Received(), `"stop":["own"]`) {
		t.Errorf("the request is %s", h.Received())
	}
}

// A request that needs a call says so, in place of what the model is set to.
func TestRequiredInvocation(t *testing.T) {
	for _, options := range []openaimodel.Options{{}, {ToolChoice: "none"}, {ExtraBody: map[string]any{"tool_choice": "none"}}} {
		h := newHarness(t, []conversetest.Line{{Text: "blue"}}, options)
		request := &converse.Request{
			Purpose: converse.PurposeSampling, RequireInvocation: true,
			History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go, in json")}},
			Tools:   &converse.Toolset{Definitions: []*invoker.Definition{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}}},
			NewID:   func() string { return "id" },
		}
		for _, err := range h.Model.Exchange(t.Context(), request) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(h.Received(), `"tool_choice":"required"`) || strings.Contains(h.Received(), `"none"`) {
			t.Errorf("the request is %s", h.Received())
		}
	}
}
