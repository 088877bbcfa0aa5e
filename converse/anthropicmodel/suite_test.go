// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func TestStreamingPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newHarness(t, lines, anthropicmodel.Options{})
	})
}

func TestNoStreamPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newHarness(t, lines, anthropicmodel.Options{NoStream: true})
	})
}

// newHarness makes a model of a server that answers as the suite wants it.
func newHarness(t *testing.T, lines []conversetest.Line, options anthropicmodel.Options) conversetest.Harness {
	reply := func(line conversetest.Line) openaiserver.Reply { return replyOf(line, !options.NoStream) }
	h := modeltest.NewHarness(t, lines, reply, func(url string) (*anthropicmodel.Model, error) {
		options.BaseURL, options.MaxRetries = strings.TrimSuffix(url, "/v1"), -1
		return anthropicmodel.New("test", &options)
	})
	h.Whole = options.NoStream
	return h
}

// replyOf is what the server sends for a line of the suite.
func replyOf(line conversetest.Line, stream bool) openaiserver.Reply {
	if failure, ok := line.Err.(*converse.ModelError); ok && line.Text == "" {
		return openaiserver.Failure{Status: failure.Status, Message: failure.Message}
	}
	replay := openaiserver.Replay{End: openaiserver.EndClean}
	if stream {
		replay.Parts = eventsOf(line)
	} else {
		replay.Header = http.Header{"Content-Type": {"application/json"}}
		replay.Parts = []openaiserver.Part{{Data: wholeOf(line)}}
	}
	last := len(replay.Parts) - 1
	switch {
	case line.Wait != nil:
		replay.End = openaiserver.EndStall
	case line.Err != nil:
		replay.End = openaiserver.EndCut
	default:
		return replay
	}
	if stream { // the last events are missing, or else the last byte
		replay.Parts = replay.Parts[:last-1]
	} else {
		whole := replay.Parts[last].Data
		replay.Parts[last].Data = whole[:len(whole)-1]
	}
	return replay
}

// wholeOf is the message of a line in one piece. Arguments are as the model wrote them, and
// a string if they are not JSON, as some compatible servers send them.
func wholeOf(line conversetest.Line) []byte {
	text := string(asJSON(messageOf(line)))
	for _, call := range line.Calls {
		if json.Valid([]byte(call.Arguments)) {
			text = strings.Replace(text, `"input":`+string(asJSON(call.Arguments)), `"input":`+call.Arguments, 1)
		}
	}
	return []byte(text)
}

// messageOf is the message of a line.
func messageOf(line conversetest.Line) map[string]any {
	content := []any{}
	if line.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": line.Text})
	}
	for _, call := range line.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": call.CallID, "name": call.Name, "input": call.Arguments})
	}
	message := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "test", "content": content, "stop_reason": stopOf(line)}
	if u := line.Usage; u != nil {
		message["usage"] = usageOf(u)
	}
	return message
}

func usageOf(u *canister.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input - u.Cached - u.CacheWritten, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWritten,
		"output_tokens":         u.Output,
		"output_tokens_details": map[string]any{"thinking_tokens": u.Reasoning},
	}
}

func stopOf(line conversetest.Line) string {
	switch line.Finish {
	case canister.FinishLength:
		return "max_tokens"
	case canister.FinishRefusal:
		return "refusal"
	case canister.FinishContentFilter:
		return "content_filter" // which Anthropic itself does not send
	}
	if len(line.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// eventsOf sends the text in two pieces or more, and then the rest.
func eventsOf(line conversetest.Line) []openaiserver.Part {
	var parts []openaiserver.Part
	event := func(kind string, members map[string]any) {
		members["type"] = kind
		parts = append(parts, openaiserver.Part{Data: fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, asJSON(members))})
	}
	event("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "model": "test", "content": []any{}}})
	index := 0
	if line.Text != "" {
		event("content_block_start", map[string]any{"index": index, "content_block": map[string]any{"type": "text", "text": ""}})
		runes := []rune(line.Text)
		for len(runes) > 0 {
			n := min(len(runes), max(20, len(line.Text)/10))
			event("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "text_delta", "text": string(runes[:n])}})
			runes = runes[n:]
		}
		event("content_block_stop", map[string]any{"index": index})
		index++
	}
	for _, call := range line.Calls {
		event("content_block_start", map[string]any{
			"index": index, "content_block": map[string]any{"type": "tool_use", "id": call.CallID, "name": call.Name, "input": map[string]any{}},
		})
		half := len(call.Arguments) / 2
		for _, piece := range []string{call.Arguments[:half], call.Arguments[half:]} {
			event("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "input_json_delta", "partial_json": piece}})
		}
		event("content_block_stop", map[string]any{"index": index})
		index++
	}
	ending := map[string]any{"delta": map[string]any{"stop_reason": stopOf(line)}}
	if u := line.Usage; u != nil {
		ending["usage"] = usageOf(u)
	}
	event("message_delta", ending)
	event("message_stop", map[string]any{})
	return parts
}

func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values
	}
	return data
}
