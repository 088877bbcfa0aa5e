// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package wire

import (
	"errors"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ToolUseBlock encodes a use of a tool. The values of its input are not changed.
func ToolUseBlock(use invoker.ToolUse) (*mcp.ToolUseContent, error) {
	block := &mcp.ToolUseContent{ID: use.ID, Name: use.Name, Input: map[string]any{}}
	if len(use.Input) > 0 {
		input, err := Members(use.Input)
		if err != nil {
			return nil, errors.New("the model asked for a tool with an input that is not a JSON object")
		}
		for name, value := range input {
			block.Input[name] = value
		}
	}
	for name, value := range use.Metadata {
		block.Meta = WithMeta(block.Meta, name, value)
	}
	return block, nil
}
