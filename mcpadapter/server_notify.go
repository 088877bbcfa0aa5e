// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bell is the name of a tool that the SDK holds and nobody sees: adding it again
// is how the SDK is told to tell all sessions and subscriptions that the tools
// have changed. It has no other way.
const bell = "consort-bell"

var anyObject = json.RawMessage(`{"type":"object"}`)

// announceTools tells the clients that the tools have changed. The first ones
// are no change.
func (s *Server) announceTools(before, after *toolset) {
	if before == nil || slices.EqualFunc(before.tools, after.tools, func(a, b *offeredTool) bool {
		return a.name == b.name && string(a.listed) == string(b.listed)
	}) {
		return
	}
	s.sdk.AddTool(&mcp.Tool{Name: bell, InputSchema: anyObject}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil // receive lets no call come here
	})
}

func (s *Server) watch() {
	_, s.watching = context.WithCancel(s.life)
}
