// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// hand is the loop that a good engineer writes in an afternoon on the two SDKs.
type hand struct {
	client  openai.Client
	session *mcp.ClientSession
	tools   []openai.ChatCompletionToolUnionParam
	stream  bool
	onDelta func(string)
}

const prefix = "tools__"

func newHand(tb testing.TB, url string, stream bool) *hand {
	tb.Helper()
	argv, environment := toolsCommand()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "hand", Version: "1"}, nil)
	session, err := client.Connect(tb.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { session.Close() })
	h := &hand{
		client:  openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none")),
		session: session,
		stream:  stream,
	}
	for tool, err := range session.Tools(tb.Context(), nil) {
		if err != nil {
			tb.Fatal(err)
		}
		schema, _ := tool.InputSchema.(map[string]any)
		h.tools = append(h.tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: prefix + tool.Name, Description: openai.String(tool.Description), Parameters: schema,
		}))
	}
	return h
}

// turn works until the model asks for no more tools.
func (h *hand) turn(ctx context.Context, prompt string) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    "scripted",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		Tools:    h.tools,
	}
	for {
		message, err := h.exchange(ctx, params)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam())
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		for _, call := range message.ToolCalls {
			var arguments map[string]any
			if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil {
				return "", err
			}
			result, err := h.session.CallTool(ctx, &mcp.CallToolParams{
				Name: strings.TrimPrefix(call.Function.Name, prefix), Arguments: arguments,
			})
			if err != nil {
				return "", err
			}
			var text strings.Builder
			for _, content := range result.Content {
				if content, ok := content.(*mcp.TextContent); ok {
					text.WriteString(content.Text)
				}
			}
			params.Messages = append(params.Messages, openai.ToolMessage(text.String(), call.ID))
		}
	}
}

func (h *hand) exchange(ctx context.Context, params openai.ChatCompletionNewParams) (*openai.ChatCompletionMessage, error) {
	if !h.stream {
		completion, err := h.client.Chat.Completions.New(ctx, params)
		if err != nil {
			return nil, err
		}
		return &completion.Choices[0].Message, nil
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := h.client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !whole.AddChunk(chunk) {
			return nil, fmt.Errorf("a chunk does not fit")
		}
		if h.onDelta != nil && len(chunk.Choices) > 0 {
			h.onDelta(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return &whole.Choices[0].Message, nil
}
