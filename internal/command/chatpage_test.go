// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/screen"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Chat shows that the server reports the interaction at a page as complete.
func TestChatShowsThatAPageIsComplete(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "login", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "login", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, err := req.Session.Elicit(ctx,
				&mcp.ElicitParams{Mode: "url", Message: "Log in to Acme.", URL: "https://example.com/login", ElicitationID: "1"}); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{}}, req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "1"})
		})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(listener.Close)
	path := file(t, model(t, says("", calls("acme__login", `{}`)), says("You are in.")),
		"[mcp.acme]\ntransport = \"http\"\nurl = \""+listener.URL+"\"\nprotocol = \"2025-11-25\"\n", allows)
	x := run{}.chats(t, 80, 24, "--config", path)
	x.says("Log in.")
	x.See("The server acme asks you to visit a page: Log in to Acme.", "https://example.com/login", "o open it in the browser")
	x.chooses("v", "I open it myself")
	x.See("The server says that this is done: Log in to Acme.")
	x.prompt()
	x.Type(screen.Ctrl('d'))
	x.ends(exit.Done)
}
