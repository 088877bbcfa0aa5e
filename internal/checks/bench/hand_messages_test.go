// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// messagesHand is the loop for Messages.
type messagesHand struct {
	client anthropic.Client
	tools  *handTools
	params []anthropic.ToolUnionParam
	stream bool
}

func newMessagesHand(url string, tools *handTools, stream bool) hand {
	client := anthropic.NewClient(option.WithBaseURL(strings.TrimSuffix(url, "/v1")), option.WithAPIKey("none"))
	h := &messagesHand{client: client, tools: tools, stream: stream}
	for _, tool := range tools.list {
		schema, _ := tool.InputSchema.(map[string]any)
		h.params = append(h.params, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: prefix + tool.Name, Description: anthropic.String(tool.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"]},
		}})
	}
	return h
}

func (h *messagesHand) turn(ctx context.Context, prompt string, onDelta func(string)) (string, error) {
	params := anthropic.MessageNewParams{
		Model: "scripted", MaxTokens: 8192, Tools: h.params, CacheControl: anthropic.NewCacheControlEphemeralParam(),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
	for {
		message, err := h.exchange(ctx, params, onDelta)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam())
		var text string
		var results []anthropic.ContentBlockParamUnion
		for _, block := range message.Content {
			switch block := block.AsAny().(type) {
			case anthropic.TextBlock:
				text += block.Text
			case anthropic.ToolUseBlock:
				said, err := h.tools.call(ctx, block.Name, string(block.Input))
				if err != nil {
					return "", err
				}
				results = append(results, anthropic.NewToolResultBlock(block.ID, said, false))
			}
		}
		if len(results) == 0 {
			return text, nil
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
	}
}

func (h *messagesHand) exchange(ctx context.Context, params anthropic.MessageNewParams, onDelta func(string)) (*anthropic.Message, error) {
	if !h.stream {
		return h.client.Messages.New(ctx, params)
	}
	stream := h.client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var whole anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := whole.Accumulate(event); err != nil {
			return nil, err
		}
		if event, ok := event.AsAny().(anthropic.ContentBlockDeltaEvent); ok {
			if delta, ok := event.Delta.AsAny().(anthropic.TextDelta); ok {
				onDelta(delta.Text)
			}
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return &whole, nil
}
