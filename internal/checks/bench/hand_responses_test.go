// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// responsesHand is the loop for Responses. Like the runtime it leaves no state on the
// server.
type responsesHand struct {
	client openai.Client
	tools  *handTools
	params []responses.ToolUnionParam
	stream bool
}

func newResponsesHand(url string, tools *handTools, stream bool) hand {
	h := &responsesHand{client: openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none")), tools: tools, stream: stream}
	for _, tool := range tools.list {
		schema, _ := tool.InputSchema.(map[string]any)
		h.params = append(h.params, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: prefix + tool.Name, Description: openai.String(tool.Description), Parameters: schema, Strict: openai.Bool(false),
		}})
	}
	return h
}

func (h *responsesHand) turn(ctx context.Context, prompt string, onDelta func(string)) (string, error) {
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(prompt, responses.EasyInputMessageRoleUser)}
	for {
		response, err := h.exchange(ctx, responses.ResponseNewParams{
			Model: "scripted", Tools: h.params, Store: openai.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
			Input:   responses.ResponseNewParamsInputUnion{OfInputItemList: input},
		}, onDelta)
		if err != nil {
			return "", err
		}
		var calls []responses.ResponseFunctionToolCall
		for _, item := range response.Output {
			switch item := item.AsAny().(type) {
			case responses.ResponseOutputMessage:
				message := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &message})
			case responses.ResponseReasoningItem:
				reasoning := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &reasoning})
			case responses.ResponseFunctionToolCall:
				call := item.ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &call})
				calls = append(calls, item)
			default:
				return "", fmt.Errorf("an item is a %T", item)
			}
		}
		if len(calls) == 0 {
			return response.OutputText(), nil
		}
		for _, call := range calls {
			text, err := h.tools.call(ctx, call.Name, call.Arguments)
			if err != nil {
				return "", err
			}
			input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
				CallID: openai.String(call.CallID), Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(text)},
			}})
		}
	}
}

func (h *responsesHand) exchange(ctx context.Context, params responses.ResponseNewParams, onDelta func(string)) (*responses.Response, error) {
	if !h.stream {
		return h.client.Responses.New(ctx, params)
	}
	stream := h.client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	var whole *responses.Response
	for stream.Next() {
		switch event := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			onDelta(event.Delta)
		case responses.ResponseCompletedEvent:
			whole = &event.Response
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errors.New("the response is not complete")
	}
	return whole, nil
}
