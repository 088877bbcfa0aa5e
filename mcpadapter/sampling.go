// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/decode"
	"github.com/consort-go/consort/mcpadapter/internal/questiontext"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errNoTools refuses a request with tools for a model that takes none. The client must
// answer with an error; the protocol does not specify its code (MCP 2025-11-25, schema
// § CreateMessageRequestParams).
var errNoTools = &jsonrpc.Error{
	Code:    jsonrpc.CodeInvalidParams,
	Message: "the model of this client does not support tools (capability sampling.tools): omit tools, toolChoice and content of the types tool_use and tool_result",
}

// sample answers sampling/createMessage.
func (q *questions) sample(ctx context.Context, req *mcp.CreateMessageWithToolsRequest) (_ *mcp.CreateMessageWithToolsResult, err error) {
	defer recoverInto(&err) // as in elicit
	asked, err := sampleRequestOf(req.Params)
	if err != nil {
		return nil, err
	}
	asked.Server = q.options.Server
	model, takesTools := q.model(ctx)
	if asked.UsesTools() && !takesTools {
		return nil, errNoTools
	}
	if err := asked.CheckTools(); err != nil {
		return nil, samplingError(err)
	}
	answer, err := consult(ctx, q, func(ctx context.Context) (*invoker.SampleResult, error) { return model(ctx, asked) })
	if err != nil {
		return nil, samplingError(err)
	}
	if answer == nil {
		return nil, &jsonrpc.Error{Code: -1, Message: "the request was refused"}
	}
	return sampleAnswer(asked, answer)
}

// samplingError returns the error to send to the server for a failed request. If the
// request itself was wrong, it has the code that the protocol specifies (MCP
// 2025-11-25, client/sampling § Error Handling).
func samplingError(err error) error {
	failure := new(invoker.Failure)
	switch {
	case errors.Is(err, invoker.ErrNoModelTools):
		return errNoTools
	case errors.As(err, &failure) && failure.Code == invoker.InvalidArguments:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: failure.Message}
	}
	return err
}

// model returns the function that answers as a model, and whether it takes tools: the
// embedder's, or that of the call (ClientOptions.SampleCalls was checked before).
// Without either, the answer is nil, a refusal.
func (q *questions) model(ctx context.Context) (model func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error), takesTools bool) {
	if q.options.Sample != nil {
		return q.options.Sample, q.options.SampleTools
	}
	if call := q.asker(ctx); call != nil && call.Model != nil {
		return call.Model, q.options.SampleTools && call.ModelTools
	}
	return func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) { return nil, nil }, q.options.SampleTools
}

// sampleRequestOf decodes a request. Parts that the SDK would decode incompletely are
// decoded from the request's own text.
func sampleRequestOf(params *mcp.CreateMessageWithToolsParams) (*invoker.SampleRequest, error) {
	asked := &invoker.SampleRequest{
		System:    params.SystemPrompt,
		MaxTokens: params.MaxTokens,
		Stop:      params.StopSequences,
	}
	if preferences := params.ModelPreferences; preferences != nil {
		for _, hint := range preferences.Hints {
			if hint != nil {
				asked.Models = append(asked.Models, hint.Name)
			}
		}
	}
	if params.ToolChoice != nil {
		asked.ToolChoice = invoker.ToolChoice(cmp.Or(params.ToolChoice.Mode, string(invoker.ToolsAuto)))
	}
	var kept struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools       []json.RawMessage
		Temperature *float64 // the SDK cannot tell 0 from a missing value
	}
	if err := json.Unmarshal(questiontext.Kept(params.Meta, questiontext.SamplingKey), &kept); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request cannot be read: " + err.Error()}
	}
	asked.Temperature = kept.Temperature
	for _, m := range kept.Messages {
		asked.Messages = append(asked.Messages, decode.SampleMessage(m.Role, decode.Blocks(m.Content)))
	}
	if params.Tools != nil {
		asked.Tools = []invoker.Definition{}
	}
	for _, raw := range kept.Tools {
		tool, err := decode.ReadTool(raw)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "a tool for the model cannot be read: " + err.Error()}
		}
		asked.Tools = append(asked.Tools, tool.Definition())
	}
	return asked, nil
}

// sampleAnswer encodes the answer of a model (MCP 2025-11-25, schema §
// CreateMessageResult): one block, or a list if there are several.
func sampleAnswer(asked *invoker.SampleRequest, answer *invoker.SampleResult) (*mcp.CreateMessageWithToolsResult, error) {
	result := &mcp.CreateMessageWithToolsResult{Model: answer.Model, Role: "assistant", StopReason: answer.Finish}
	if len(answer.ToolUses) == 0 {
		result.Content = []mcp.Content{&mcp.TextContent{Text: answer.Text}}
		return result, nil
	}
	if len(asked.Tools) == 0 {
		return nil, errors.New("the model called tools, but was offered none")
	}
	if answer.Text != "" {
		result.Content = append(result.Content, &mcp.TextContent{Text: answer.Text})
	}
	for _, use := range answer.ToolUses {
		block, err := wire.ToolUseBlock(use)
		if err != nil {
			return nil, err
		}
		result.Content = append(result.Content, block)
	}
	result.StopReason = cmp.Or(result.StopReason, "toolUse")
	return result, nil
}
