// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The benchmarks hold conversations of many exchanges, each with one call, over
// a real socket: ours bound and not, and a loop written by hand on the SDK.

const (
	benchResult    = "The quick brown fox jumps over the lazy dog, and so on. "
	benchArguments = `{"path":"a.txt"}`
)

func benchServer(b *testing.B) *openaiserver.Server {
	return start(b, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "f", Arguments: benchArguments}}}},
	}}, &openaiserver.Options{Trust: true, Record: -1})
}

func BenchmarkConversation(b *testing.B) {
	for _, n := range []int{20, 200, 500} {
		for _, stream := range []bool{true, false} {
			name := fmt.Sprintf("exchanges=%d/stream=%v", n, stream)
			b.Run(name+"/bound", func(b *testing.B) { benchModel(b, n, stream, true) })
			b.Run(name+"/unbound", func(b *testing.B) { benchModel(b, n, stream, false) })
			b.Run(name+"/sdk", func(b *testing.B) { benchSDK(b, n, stream) })
		}
	}
}

func benchModel(b *testing.B, n int, stream, bind bool) {
	model := newModel(b, benchServer(b).URL(), openaimodel.Options{NoStream: !stream})
	set := tools("f")
	b.ReportAllocs()
	for b.Loop() {
		var m converse.Model = model
		if bind {
			m = model.Bind()
		}
		history := []canister.Canister{canister.User{Head: head("u"), Content: canister.Texts("Go on.")}}
		for i := range n {
			made := 0
			request := &converse.Request{History: history, Tools: set, NewID: func() string { made++; return fmt.Sprint(i, "-", made) }}
			for event, err := range m.Exchange(context.Background(), request) {
				if err != nil {
					b.Fatal(err)
				}
				if reply, ok := event.(converse.Reply); ok {
					call := reply.Invocations[0]
					history = append(history, reply.Message, call,
						canister.Result{Head: head("r" + call.ID), Invocation: call.ID, Content: canister.Texts(strings.Repeat(benchResult, 4))})
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/exchange")
}

func benchSDK(b *testing.B, n int, stream bool) {
	client := openai.NewClient(option.WithBaseURL(benchServer(b).URL()), option.WithAPIKey("k"))
	tool := openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "f", Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
	})
	b.ReportAllocs()
	for b.Loop() {
		params := openai.ChatCompletionNewParams{
			Model: "m-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
			Tools: []openai.ChatCompletionToolUnionParam{tool},
		}
		for range n {
			message, err := askSDK(&client, params, stream)
			if err != nil {
				b.Fatal(err)
			}
			params.Messages = append(params.Messages, message.ToParam())
			for _, call := range message.ToolCalls {
				if !json.Valid([]byte(call.Function.Arguments)) {
					b.Fatal(call)
				}
				params.Messages = append(params.Messages, openai.ToolMessage(strings.Repeat(benchResult, 4), call.ID))
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/exchange")
}

func askSDK(client *openai.Client, params openai.ChatCompletionNewParams, stream bool) (openai.ChatCompletionMessage, error) {
	if !stream {
		answer, err := client.Chat.Completions.New(context.Background(), params)
		if err != nil {
			return openai.ChatCompletionMessage{}, err
		}
		return answer.Choices[0].Message, nil
	}
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	events := client.Chat.Completions.NewStreaming(context.Background(), params)
	defer events.Close()
	answer := openai.ChatCompletionAccumulator{}
	for events.Next() {
		answer.AddChunk(events.Current())
	}
	if err := events.Err(); err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return answer.Choices[0].Message, nil
}

// BenchmarkDeltas reads one long answer.
func BenchmarkDeltas(b *testing.B) {
	server := start(b, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Text: strings.Repeat("word ", 2000), Delta: 5}},
	}}, &openaiserver.Options{Trust: true, Record: -1})
	b.Run("model", func(b *testing.B) {
		model := newModel(b, server.URL(), openaimodel.Options{})
		b.ReportAllocs()
		for b.Loop() {
			if got := modeltest.Run(context.Background(), model, newRequest()); got.Err != nil {
				b.Fatal(got.Err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		client := openai.NewClient(option.WithBaseURL(server.URL()), option.WithAPIKey("k"))
		params := openai.ChatCompletionNewParams{Model: "m-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello?")}}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := askSDK(&client, params, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}
