// SPDX-License-Identifier: Apache-2.0

// Package sdkcache bounds the caches of a client of the MCP SDK.
package sdkcache

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// complete is the key of the tools of a whole listing. No server is asked with it as a
// cursor, so that the SDK keeps them until the next listing is complete.
const complete = "\x00complete"

// KeepNewest returns a middleware for the requests of one client. It makes the SDK keep
// one result of each method at most, and for tools/list two: the last complete listing, and
// the page that was read last.
//
// Without it, the SDK keeps each page of a list and each resource that was read, by cursor
// or URI, until the connection ends. It looks for the Mcp-Param headers of a tool
// (SEP-2243) in any of these pages, also of earlier listings.
func KeepNewest() mcp.Middleware {
	var mu sync.Mutex
	var tools []*mcp.Tool // of the pages of a listing, until the last one
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			switch params := req.GetParams().(type) { // the SDK takes the key from it after the request
			case *mcp.ListToolsParams:
				mu.Lock()
				defer mu.Unlock()
				if params.Cursor == "" {
					tools = nil
				}
				params.Cursor = ""
				if page, ok := result.(*mcp.ListToolsResult); ok && err == nil {
					tools = append(tools, page.Tools...)
					if page.NextCursor == "" {
						page.Tools, tools = slices.Clip(tools), nil
						params.Cursor = complete
					}
				}
			case *mcp.ListResourcesParams:
				params.Cursor = ""
			case *mcp.ListResourceTemplatesParams:
				params.Cursor = ""
			case *mcp.ListPromptsParams:
				params.Cursor = ""
			case *mcp.ReadResourceParams:
				params.URI = ""
			}
			return result, err
		}
	}
}
