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

// hand is a loop that a good engineer writes in an afternoon on the provider's SDK and
// go-sdk. It sends the whole history with each request.
type hand interface {
	// turn works until the model asks for no more tools. It passes on the pieces of text.
	turn(ctx context.Context, prompt string, onDelta func(text string)) (string, error)
}

// handTools are the tools of the loops.
type handTools struct {
	list []*mcp.Tool
	call func(ctx context.Context, name, arguments string) (string, error)
}

const prefix = "tools__"

// newHandTools returns the tools of a server, which the loops share.
func newHandTools(tb testing.TB) *handTools {
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
	tools := &handTools{call: func(ctx context.Context, name, arguments string) (string, error) {
		return callTool(ctx, session, name, arguments)
	}}
	for tool, err := range session.Tools(tb.Context(), nil) {
		if err != nil {
			tb.Fatal(err)
		}
		tools.list = append(tools.list, tool)
	}
	return tools
}

// callTool calls a tool of a server and returns the text of the result.
func callTool(ctx context.Context, session *mcp.ClientSession, name, arguments string) (string, error) {
	var decoded map[string]any
	if err := json.Unmarshal([]byte(arguments), &decoded); err != nil {
		return "", err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: strings.TrimPrefix(name, prefix), Arguments: decoded})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range result.Content {
		if content, ok := content.(*mcp.TextContent); ok {
			text.WriteString(content.Text)
		}
	}
	return text.String(), nil
}

// lookInput are the arguments of the tool that is a Go function.
type lookInput struct {
	What string `json:"what"`
}

// lookText is what it returns.
var lookText = strings.Repeat("0123456789", answerBytes/10)

// newHandFunction returns one tool, which is a Go function.
func newHandFunction() *handTools {
	schema := map[string]any{"type": "object", "properties": map[string]any{"what": map[string]any{"type": "string"}}, "required": []any{"what"}}
	return &handTools{
		list: []*mcp.Tool{{Name: "look", Description: "Look something up.", InputSchema: schema}},
		call: func(_ context.Context, name, arguments string) (string, error) {
			var in lookInput
			if err := json.Unmarshal([]byte(arguments), &in); err != nil {
				return "", err
			}
			if name != prefix+"look" {
				return "", fmt.Errorf("there is no tool %q", name)
			}
			return lookText, nil
		},
	}
}

// chatHand is the loop for Chat Completions.
type chatHand struct {
	client openai.Client
	tools  *handTools
	params []openai.ChatCompletionToolUnionParam
	stream bool
}

func newChatHand(url string, tools *handTools, stream bool) hand {
	h := &chatHand{client: openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none")), tools: tools, stream: stream}
	for _, tool := range tools.list {
		schema, _ := tool.InputSchema.(map[string]any)
		h.params = append(h.params, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: prefix + tool.Name, Description: openai.String(tool.Description), Parameters: schema,
		}))
	}
	return h
}

func (h *chatHand) turn(ctx context.Context, prompt string, onDelta func(string)) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    "scripted",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		Tools:    h.params,
	}
	for {
		message, err := h.exchange(ctx, params, onDelta)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam())
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		texts := make([]string, len(message.ToolCalls))
		err = allOf(len(texts), func(i int) (err error) {
			call := message.ToolCalls[i].Function
			texts[i], err = h.tools.call(ctx, call.Name, call.Arguments)
			return err
		})
		if err != nil {
			return "", err
		}
		for i, text := range texts {
			params.Messages = append(params.Messages, openai.ToolMessage(text, message.ToolCalls[i].ID))
		}
	}
}

func (h *chatHand) exchange(ctx context.Context, params openai.ChatCompletionNewParams, onDelta func(string)) (*openai.ChatCompletionMessage, error) {
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
		if len(chunk.Choices) > 0 {
			onDelta(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return &whole.Choices[0].Message, nil
}
