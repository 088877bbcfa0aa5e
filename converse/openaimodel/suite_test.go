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
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func TestStreamingPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newHarness(t, lines, openaimodel.Options{})
	})
}

func TestNoStreamPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		return newHarness(t, lines, openaimodel.Options{NoStream: true})
	})
}

// A conversation with this model over HTTP is played again without it.
func TestConversationIsPlayedAgain(t *testing.T) {
	h := newHarness(t, []conversetest.Line{
		{Text: "Let me look at all of them.", Calls: []conversetest.Call{
			{Name: "local__echo", Arguments: `{"text":"a"}`, CallID: "one"}, {Name: "local__fail", Arguments: `{"text":"b"}`},
		}, Usage: &canister.Usage{Input: 9, Output: 3}},
		{Text: "I cannot help with", Finish: canister.FinishLength},
	}, openaimodel.Options{})
	roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.ServerTools()...))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(t.Context())
	record := conversetest.Record(converse.New(h.Model, roster, nil), roster)
	for _, err := range record.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := record.Transcript()
	if err != nil {
		t.Fatal(err)
	}
	got, err := want.Replay(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if difference := conversetest.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

// newHarness makes a model of a server that answers as the suite wants it: the
// server of package openaiserver counts assistant messages as the suite does.
func newHarness(t *testing.T, lines []conversetest.Line, options openaimodel.Options) conversetest.Harness {
	return newHarnessOf(t, lines, options, func(line conversetest.Line) openaiserver.Reply { return replyOf(line, !options.NoStream) })
}

func newHarnessOf(t *testing.T, lines []conversetest.Line, options openaimodel.Options, reply func(conversetest.Line) openaiserver.Reply) conversetest.Harness {
	h := modeltest.NewHarness(t, lines, reply, func(url string) (*openaimodel.Model, error) {
		options.BaseURL, options.MaxRetries = url, -1
		return openaimodel.New("test", &options)
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
		replay.Parts = streamOf(line)
	} else {
		replay.Header = http.Header{"Content-Type": {"application/json"}}
		replay.Parts = []openaiserver.Part{{Data: completion("message", saying(line, line.Text), &line)}}
	}
	return ending(line, replay, stream)
}

// ending makes an answer end as the line wants it.
func ending(line conversetest.Line, replay openaiserver.Replay, stream bool) openaiserver.Replay {
	last := len(replay.Parts) - 1
	switch {
	case line.Wait != nil:
		replay.End = openaiserver.EndStall
	case line.Err != nil:
		replay.End = openaiserver.EndCut
	default:
		return replay
	}
	if stream { // the last event is missing, or else the last byte
		replay.Parts = replay.Parts[:last]
	} else {
		whole := replay.Parts[last].Data
		replay.Parts[last].Data = whole[:len(whole)-1]
	}
	return replay
}

// streamOf sends the text in two pieces or more, and all the rest in one.
func streamOf(line conversetest.Line) []openaiserver.Part {
	var parts []openaiserver.Part
	event := func(data []byte) {
		parts = append(parts, openaiserver.Part{Data: fmt.Appendf(nil, "data: %s\n\n", data)})
	}
	runes := []rune(line.Text)
	for len(runes) > 0 {
		n := min(len(runes), max(20, len(line.Text)/10))
		event(completion("delta", saying(conversetest.Line{Finish: line.Finish}, string(runes[:n])), nil))
		runes = runes[n:]
	}
	event(append(completion("delta", saying(line, ""), &line), "\n\ndata: [DONE]"...))
	return parts
}

// saying is the message of an answer, or a piece of it.
func saying(line conversetest.Line, text string) map[string]any {
	message := map[string]any{"role": "assistant"}
	switch {
	case text == "":
	case line.Finish == canister.FinishRefusal:
		message["refusal"] = text
	default:
		message["content"] = text
	}
	var calls []any
	for i, call := range line.Calls {
		calls = append(calls, map[string]any{"index": i, "id": call.CallID, "type": "function",
			"function": map[string]any{"name": call.Name, "arguments": call.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return message
}

// completion is a whole answer, or an event of a stream; line is how the answer
// ends, and nil for an event that does not end it.
func completion(key string, message map[string]any, line *conversetest.Line) []byte {
	choice := map[string]any{"index": 0, key: message}
	answer := map[string]any{"id": "chatcmpl-1", "model": "test", "choices": []any{choice}}
	if line != nil {
		choice["finish_reason"] = finishOf(*line)
	}
	if line != nil && line.Usage != nil {
		answer["usage"] = map[string]any{
			"prompt_tokens": line.Usage.Input, "completion_tokens": line.Usage.Output,
			"prompt_tokens_details":     map[string]any{"cached_tokens": line.Usage.Cached, "cache_write_tokens": line.Usage.CacheWritten},
			"completion_tokens_details": map[string]any{"reasoning_tokens": line.Usage.Reasoning},
		}
	}
	data, err := json.Marshal(answer)
	if err != nil {
		panic(err) // plain values
	}
	return data
}

// finishOf is OpenAI's word for the end of an answer.
func finishOf(line conversetest.Line) string {
	switch line.Finish {
	case canister.FinishLength, canister.FinishContentFilter:
		return string(line.Finish)
	}
	if len(line.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}
