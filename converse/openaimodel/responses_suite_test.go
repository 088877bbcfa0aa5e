// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func TestResponsesPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newResponsesHarness(t, lines, openaimodel.Options{})
	})
}

func TestWholeResponsesPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newResponsesHarness(t, lines, openaimodel.Options{NoStream: true})
	})
}

// newResponsesHarness is like newHarness, with the Responses API.
func newResponsesHarness(t *testing.T, lines []conversetest.Line, options openaimodel.Options) conversetest.Harness {
	options.API = "responses"
	return newHarnessOf(t, lines, options, func(line conversetest.Line) openaiserver.Reply { return responseOf(line, !options.NoStream) })
}

// responseOf is what the server sends for a line of the suite.
func responseOf(line conversetest.Line, stream bool) openaiserver.Reply {
	if failure, ok := line.Err.(*converse.ModelError); ok && line.Text == "" {
		return openaiserver.Failure{Status: failure.Status, Message: failure.Message}
	}
	response := responseFor(line)
	replay := openaiserver.Replay{End: openaiserver.EndClean}
	if stream {
		replay.Parts = responseEvents(line, response)
	} else {
		replay.Header = http.Header{"Content-Type": {"application/json"}}
		replay.Parts = []openaiserver.Part{{Data: asJSON(response)}}
	}
	return ending(line, replay, stream)
}

// responseFor is the whole response of a line.
func responseFor(line conversetest.Line) map[string]any {
	output := []any{}
	if line.Text != "" {
		part := map[string]any{"type": "output_text", "text": line.Text, "annotations": []any{}}
		if line.Finish == canister.FinishRefusal {
			part = map[string]any{"type": "refusal", "refusal": line.Text}
		}
		output = append(output, map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{part}})
	}
	for i, call := range line.Calls {
		output = append(output, map[string]any{
			"type": "function_call", "id": fmt.Sprint("fc_", i), "call_id": call.CallID, "name": call.Name, "arguments": call.Arguments, "status": "completed",
		})
	}
	response := map[string]any{"id": "resp_1", "object": "response", "status": "completed", "model": "test", "output": output, "error": nil}
	switch line.Finish {
	case canister.FinishLength:
		response["status"], response["incomplete_details"] = "incomplete", map[string]any{"reason": "max_output_tokens"}
	case canister.FinishContentFilter:
		response["status"], response["incomplete_details"] = "incomplete", map[string]any{"reason": "content_filter"}
	}
	if u := line.Usage; u != nil {
		response["usage"] = map[string]any{
			"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWritten},
			"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		}
	}
	return response
}

// responseEvents sends the text in two pieces or more, and then the rest.
func responseEvents(line conversetest.Line, response map[string]any) []openaiserver.Part {
	var parts []openaiserver.Part
	event := func(kind string, members map[string]any) {
		members["type"] = kind
		parts = append(parts, openaiserver.Part{Data: fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, asJSON(members))})
	}
	kind := "response.output_text.delta"
	if line.Finish == canister.FinishRefusal {
		kind = "response.refusal.delta"
	}
	event("response.created", map[string]any{"response": map[string]any{"id": "resp_1", "status": "in_progress", "model": "test", "output": []any{}}})
	runes := []rune(line.Text)
	for len(runes) > 0 {
		n := min(len(runes), max(20, len(line.Text)/10))
		event(kind, map[string]any{"output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": string(runes[:n])})
		runes = runes[n:]
	}
	for i, item := range response["output"].([]any) {
		event("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	event("response."+response["status"].(string), map[string]any{"response": response})
	return parts
}

func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values
	}
	return data
}
