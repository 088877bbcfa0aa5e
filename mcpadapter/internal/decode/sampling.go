// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// SampleMessage decodes a message (MCP 2025-11-25, schema § SamplingMessage).
func SampleMessage(role string, blocks []json.RawMessage) invoker.SampleMessage {
	message := invoker.SampleMessage{Role: role}
	for _, block := range blocks {
		m, _ := wire.Members(block) // Content handles a block that is not an object
		d := Object{Members: m}
		switch d.Text("type") {
		case "tool_use":
			use := invoker.ToolUse{ID: d.Text("id"), Name: d.Text("name"), Input: m["input"]}
			use.Metadata, _ = wire.Members(m["_meta"])
			message.ToolUses = append(message.ToolUses, use)
		case "tool_result":
			message.ToolResults = append(message.ToolResults, toolResultOf(d))
		default:
			message.Content = append(message.Content, Content(block))
		}
	}
	return message
}

func toolResultOf(d Object) invoker.ToolResult {
	result := invoker.ToolResult{ToolUseID: d.Text("toolUseId"), Failed: d.bool("isError")}
	result.Metadata, _ = wire.Members(d.Members["_meta"])
	var blocks []json.RawMessage
	d.into("content", &blocks)
	for _, block := range blocks {
		result.Content = append(result.Content, Content(block))
	}
	if structured := d.Members["structuredContent"]; len(structured) > 0 && string(structured) != "null" {
		result.Content = append(result.Content, canister.StructuredContent{JSON: jsontext.Compact(structured)})
	}
	return result
}
