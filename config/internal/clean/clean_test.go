// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

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
	redact := func(text string) string { return strings.ReplaceAll(text, key, "[secret]") }
	output, err := (&tool{Invoker: inner, redact: redact}).Invoke(t.Context(), &invoker.Call{
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
