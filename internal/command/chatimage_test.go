// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The image of a result takes its rows in the scrollback, and the rest of the screen stays
// right.
func TestChatShowsImages(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, 160, 160))); err != nil { // 20 columns and 10 rows
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "painter", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "paint", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: data.Bytes(), MIMEType: "image/png"}}}, nil
		})
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(listener.Close)
	for terminal, rows := range map[string]int{"kitty": 12, "": 0} {
		path := file(t, model(t, says("", calls("painter__paint", `{}`)), says("It is painted."), says("Yes.")),
			"[mcp.painter]\ntransport = \"http\"\nurl = \""+listener.URL+"\"\n", allows)
		x := run{env: []string{"KITTY_WINDOW_ID=" + terminal, "TERM_PROGRAM=", "TMUX=", "STY="}}.chats(t, 80, 24, "--config", path)
		x.says("Paint.")
		x.See("It is painted.")
		x.prompt()
		x.says("Is it?")
		x.See("Yes.")
		x.leaves()
		_, after, found := strings.Cut(x.All(), "image/png")
		between, _, painted := strings.Cut(after, "It is painted.")
		if n := strings.Count(between, "\n") - 1; rows > 0 && (!found || !painted || n != rows) {
			t.Errorf("%q: %d rows are between the description and the answer, want %d:\n%s", terminal, n, rows, x.All())
		}
		if rows == 0 && !strings.Contains(x.All(), "image/png") {
			t.Errorf("the image is not described:\n%s", x.All())
		}
	}
}
