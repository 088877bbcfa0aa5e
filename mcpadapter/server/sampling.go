// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// clientModel returns the model of a client with the sampling capability. Requests with
// tools are sent only to clients that declare sampling.tools (MCP 2025-11-25,
// client/sampling § Tools in Sampling).
func clientModel(ask wire.Asker, can *mcp.SamplingCapabilities) func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
	return func(ctx context.Context, q *invoker.SampleRequest) (*invoker.SampleResult, error) {
		if q.UsesTools() && can.Tools == nil {
			return nil, invoker.NoModelTools()
		}
		params, err := sampleParams(q)
		if err != nil {
			return nil, err
		}
		answer, err := ask(ctx, q.Key, params)
		if err != nil {
			return nil, err
		}
		return sampleResult(q, answer)
	}
}

func sampleParams(q *invoker.SampleRequest) (*mcp.CreateMessageWithToolsParams, error) {
	params := &mcp.CreateMessageWithToolsParams{
		SystemPrompt: q.System, MaxTokens: q.MaxTokens, StopSequences: q.Stop,
		Messages: []*mcp.SamplingMessageV2{},
	}
	if q.Temperature != nil {
		params.Temperature = *q.Temperature // the SDK does not send 0
	}
	if params.MaxTokens == 0 {
		params.MaxTokens = defaultMaxTokens // the protocol cannot express "not set"
	}
	if len(q.Models) > 0 {
		params.ModelPreferences = &mcp.ModelPreferences{}
		for _, name := range q.Models {
			params.ModelPreferences.Hints = append(params.ModelPreferences.Hints, &mcp.ModelHint{Name: name})
		}
	}
	if q.ToolChoice != "" {
		params.ToolChoice = &mcp.ToolChoice{Mode: string(q.ToolChoice)}
	}
	for i := range q.Tools {
		params.Tools = append(params.Tools, sampleTool(&q.Tools[i]))
	}
	for i := range q.Messages {
		if err := addMessages(params, &q.Messages[i]); err != nil {
			return nil, err
		}
	}
	return params, nil
}

const defaultMaxTokens = 4096

// sampleTool converts a tool and keeps its schemas unchanged.
func sampleTool(def *invoker.Definition) *mcp.Tool {
	tool := new(mcp.Tool)
	if json.Unmarshal(listedTool(&offeredTool{name: def.Name, def: def}, false), tool) != nil {
		*tool = mcp.Tool{Description: def.Description} // cannot happen: listedTool returns valid JSON
	}
	tool.Name, tool.InputSchema = def.Name, objectSchema(def.InputSchema)
	if len(def.OutputSchema) > 0 {
		tool.OutputSchema = def.OutputSchema
	}
	return tool
}

// addMessages adds a message to the request: one for each piece of content, because
// older clients do not accept lists. A message with tool uses or results stays one
// message, because clients with tools accept lists.
func addMessages(params *mcp.CreateMessageWithToolsParams, m *invoker.SampleMessage) error {
	var pieces []mcp.Content
	for _, content := range m.Content {
		piece, err := sampleContent(content)
		if err != nil {
			return err
		}
		pieces = append(pieces, piece)
	}
	add := func(content ...mcp.Content) {
		params.Messages = append(params.Messages, &mcp.SamplingMessageV2{Role: mcp.Role(m.Role), Content: content})
	}
	if len(m.ToolUses) == 0 && len(m.ToolResults) == 0 {
		for _, piece := range pieces {
			add(piece)
		}
		return nil
	}
	for _, use := range m.ToolUses {
		block, err := wire.ToolUseBlock(use)
		if err != nil {
			return err
		}
		pieces = append(pieces, block)
	}
	for _, result := range m.ToolResults {
		block, err := toolResultBlock(result)
		if err != nil {
			return err
		}
		pieces = append(pieces, block)
	}
	add(pieces...)
	return nil
}

// toolResultBlock converts the result of a tool, with the same content blocks as the
// result of a call.
func toolResultBlock(result invoker.ToolResult) (*mcp.ToolResultContent, error) {
	content, structured, err := blocksFor(result.Content...)
	if err != nil {
		return nil, err
	}
	block := &mcp.ToolResultContent{ToolUseID: result.ToolUseID, Content: content, IsError: result.Failed}
	switch {
	case len(structured) == 0:
	case structured[0] == '{':
		block.StructuredContent = structured
	case len(result.Content) > 1: // a single piece is already there as text
		block.Content = append(block.Content, &mcp.TextContent{Text: string(structured)})
	}
	for name, value := range result.Metadata {
		block.Meta = wire.WithMeta(block.Meta, name, value)
	}
	return block, nil
}

// blocksFor converts content to blocks of the SDK, with the metadata of each unless the
// SDK cannot read it. It also returns the first structured content, see
// [object.blocks].
func blocksFor(content ...canister.Content) (blocks []mcp.Content, structured json.RawMessage, err error) {
	content = slices.Clone(content)
	for i, c := range content {
		if text, ok := c.(canister.TextContent); ok && text.Metadata[wire.MetadataPrefix+"block"] != nil {
			content[i] = canister.Text(text.Text) // of a type that the SDK does not read
		}
	}
	blocks, structured, err = readBlocks(content)
	if err == nil {
		return blocks, structured, nil
	}
	for i, c := range content {
		p := canister.PayloadOf(c)
		p.Extra = canister.Extra{}
		content[i] = canister.WithPayload(c, p)
	}
	if blocks, structured, err = readBlocks(content); err != nil {
		return nil, nil, invoker.Failf(invoker.Internal, "The content cannot be sent to a model through MCP: %w", err)
	}
	return blocks, structured, nil
}

func readBlocks(content []canister.Content) (blocks []mcp.Content, structured json.RawMessage, err error) {
	w := jsonobject.New()
	structured = writeBlocks(w, content)
	var read mcp.CallToolResult
	err = json.Unmarshal(w.End(), &read)
	return read.Content, structured, err
}

// sampleContent converts a piece of a message: text, image or audio.
func sampleContent(c canister.Content) (mcp.Content, error) {
	takes := false
	switch c := c.(type) {
	case canister.TextContent, canister.AudioContent, canister.StructuredContent:
		takes = true
	case canister.ImageContent:
		takes = c.URL == ""
	default:
	}
	if !takes {
		return nil, invoker.Failf(invoker.Internal, "A model through MCP accepts text, images and audio, but not %T.", c)
	}
	blocks, _, err := blocksFor(c)
	if err != nil {
		return nil, err
	}
	return blocks[0], nil
}

// sampleResult converts the answer of a client to a sampling request.
func sampleResult(q *invoker.SampleRequest, answer mcp.InputResponse) (*invoker.SampleResult, error) {
	var parts []mcp.Content
	result := &invoker.SampleResult{}
	switch a := answer.(type) {
	case *mcp.CreateMessageResult:
		parts, result.Model, result.Finish = []mcp.Content{a.Content}, a.Model, a.StopReason
	case *mcp.CreateMessageWithToolsResult:
		parts, result.Model, result.Finish = a.Content, a.Model, a.StopReason
	default:
		return nil, invoker.Failf(invoker.Protocol, "The client's answer to a question for its model is not valid.")
	}
	for _, part := range parts {
		switch part := part.(type) {
		case *mcp.TextContent:
			result.Text += part.Text
		case *mcp.ToolUseContent:
			if len(q.Tools) == 0 {
				return nil, invoker.Failf(invoker.Protocol, "The client's model called the tool %q, but was offered no tools.", part.Name)
			}
			use, err := toolUseOf(part)
			if err != nil {
				return nil, err
			}
			result.ToolUses = append(result.ToolUses, use)
		default:
			return nil, invoker.Failf(invoker.Protocol, "The answer of the client's model is not text: %s.", fmt.Sprintf("%T", part))
		}
	}
	return result, nil
}

// toolUseOf converts a tool use. The SDK may have normalized parts of it.
func toolUseOf(block *mcp.ToolUseContent) (invoker.ToolUse, error) {
	use := invoker.ToolUse{ID: block.ID, Name: block.Name, Input: json.RawMessage(`{}`)}
	var err error
	if len(block.Input) > 0 {
		use.Input, err = json.Marshal(block.Input)
	}
	for name, value := range block.Meta {
		if use.Metadata == nil {
			use.Metadata = canister.Fields{}
		}
		if use.Metadata[name], err = json.Marshal(value); err != nil {
			break
		}
	}
	if err != nil {
		return use, invoker.Failf(invoker.Protocol, "A use of a tool by the client's model cannot be read: %w", err)
	}
	return use, nil
}
