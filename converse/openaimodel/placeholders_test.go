// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// TestHistoriesOfOtherModels: a turn moves to another provider after a model has made calls.
// Gemini, Kimi and DeepSeek refuse such a history once, and then accept it with placeholders,
// also in the next turn. What they have produced themselves goes back as it was.
func TestHistoriesOfOtherModels(t *testing.T) {
	const skip, signature = "skip_thought_signature_validator", "c2lnbmF0dXJl"
	for provider, want := range map[string]struct{ signatures, reasoning []string }{
		"gemini":   {[]string{skip, skip, signature, ""}, []string{"", "I look again.", ""}},
		"kimi":     {[]string{"", "", signature, ""}, []string{" ", "I look again.", " "}},
		"deepseek": {[]string{"", "", signature, ""}, []string{" ", "I look again.", " "}},
	} {
		t.Run(provider, func(t *testing.T) {
			look, again := openaiserver.Call{Name: "local__look"}, openaiserver.Call{Name: "local__look"}
			down := openaiserver.Step{Reply: openaiserver.Failure{Status: 503, Message: "Overloaded"}}
			first := start(t, openaiserver.Script{Steps: []openaiserver.Step{
				{Reply: openaiserver.Message{Reasoning: "I look.", Calls: []openaiserver.Call{look, look}}}, down, down, down,
			}}, nil)
			again.Extra = json.RawMessage(`{"google":{"thought_signature":"` + signature + `"}}`)
			second := start(t, openaiserver.Script{Provider: provider, Steps: []openaiserver.Step{
				{},
				{Reply: openaiserver.Message{Reasoning: "I look again.", Calls: []openaiserver.Call{again, look}}},
				{Reply: openaiserver.Message{Text: "A cat."}},
				{Reply: openaiserver.Message{Text: "A black one."}},
			}}, nil)
			once := openaimodel.Options{MaxRetries: -1}
			chain := converse.Chain(newModel(t, first.URL(), once), newModel(t, second.URL(), once))
			talk := converse.New(chain, looking(t, canister.Texts("a cat")...), nil)
			for _, answer := range []string{"A cat.", "A black one."} {
				if turn, err := talk.Ask(t.Context(), canister.Text("What is this?")); err != nil || turn.Text() != answer {
					t.Fatalf("the answer is %q, want %q: %v", turn.Text(), answer, err)
				}
			}
			if faults := second.Faults(); len(faults) != 1 {
				t.Errorf("refused: %q", faults)
			}
			requests := second.Requests()
			last := gjson.GetBytes(requests[len(requests)-1].Body, "messages")
			var signatures, reasoning []string
			for _, message := range last.Array() {
				for _, call := range message.Get("tool_calls").Array() {
					signatures = append(signatures, call.Get("extra_content.google.thought_signature").String())
				}
				if message.Get("role").String() == "assistant" {
					reasoning = append(reasoning, message.Get("reasoning_content").String())
				}
			}
			if !slices.Equal(signatures, want.signatures) || !slices.Equal(reasoning, want.reasoning) {
				t.Errorf("the signatures are %q, want %q, and the reasoning is %q, want %q", signatures, want.signatures, reasoning, want.reasoning)
			}
		})
	}
}

// looking returns a roster with the tool local__look, which returns content.
func looking(t *testing.T, content ...canister.Content) *ensemble.Roster {
	t.Helper()
	definition := invoker.Definition{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}
	tool, err := invoker.Raw(definition, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: content}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", tool))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roster.Close(context.Background()) })
	return roster
}

// A refusal leads to placeholders once, and only if the server says that something is missing.
func TestPlaceholdersOnce(t *testing.T) {
	for message, requests := range map[string]int{
		"Unable to submit request because function call `f` in the 2. content block is missing a `thought_signature`.": 2,
		"Missing `reasoning_content` field in the assistant message at message index 2.":                               2,
		"property 'reasoning_content' is unsupported":                                                                  1,
		"Thought signature is not valid":                                                                               1,
	} {
		text, err := json.Marshal(map[string]any{"error": map[string]any{"message": message}})
		if err != nil {
			t.Fatal(err)
		}
		_, bodies, failed := talkWith(t, openaimodel.Options{MaxRetries: -1}, 1, func(int, string) (int, string) { return 400, string(text) })
		if failed == nil || !strings.Contains(failed.Error(), message) || len(bodies) != requests {
			t.Errorf("%d requests, want %d: %v", len(bodies), requests, failed)
		}
	}
}
