// SPDX-License-Identifier: Apache-2.0

package demoserver_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/demoserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect returns a session with a server in this program.
func connect(t *testing.T, server *mcp.Server, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, options).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// call returns the text of a result, and whether it is an error.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(tool)
	result, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestAtlas(t *testing.T) {
	session := connect(t, demoserver.New("atlas", 0), nil)
	for _, test := range []struct {
		tool, arguments string // pairs of name and value
		want            string
		isError         bool
	}{
		{"weather", "city oslo", "Oslo: -3 °C, snow", false},
		{"weather", "city Olso", "did you mean Oslo?", true},
		{"weather", "city Atlantis", "Lisbon, Nairobi, Oslo, Quito, Tokyo", true},
		{"local_time", "from Lisbon to Tokyo time 20:30", "05:30 in Tokyo", false},
		{"local_time", "from Lisbon to Tokyo time noon", "15:04", true},
		{"local_time", "from Lisbon to Tokio time 12:00", "did you mean Tokyo?", true},
	} {
		words, arguments := strings.Fields(test.arguments), map[string]any{}
		for i := 0; i < len(words); i += 2 {
			arguments[words[i]] = words[i+1]
		}
		if got, isError := call(t, session, test.tool, arguments); !strings.Contains(got, test.want) || isError != test.isError {
			t.Errorf("%s %s: %q, error %v", test.tool, test.arguments, got, isError)
		}
	}
}

func TestSatchel(t *testing.T) {
	reports := make(chan string, 10)
	session := connect(t, demoserver.New("satchel", 0), &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			reports <- fmt.Sprintf("%g/%g %s", req.Params.Progress, req.Params.Total, req.Params.Message)
		},
	})
	for _, test := range []struct {
		tool, items, want string
		isError           bool
	}{
		{"pack", "hat,scarf", "hat, scarf", false},
		{"pack", "hat", "hat, scarf", false},
		{"unpack", "boots", "there is hat, scarf", true},
		{"unpack", "scarf", "in the satchel: hat", false},
		{"pack", strings.Repeat("x,", 100), "at most", true},
	} {
		if got, isError := call(t, session, test.tool,
			map[string]any{"items": strings.Split(test.items, ",")}); !strings.Contains(got, test.want) || isError != test.isError {
			t.Errorf("%s %s: %q, error %v", test.tool, test.items, got, isError)
		}
	}
	if got, _ := call(t, session, "weigh", map[string]any{}); got != "1 items, 280 g" {
		t.Errorf("weigh: %q", got)
	}
	if got := <-reports; got != "1/1 hat" {
		t.Errorf("progress: %q", got)
	}
}

func ExampleServeStdio() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"example","version":"1"}}}` + "\n")
	out := &firstLine{done: make(chan struct{})}
	held := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(in, out), io.NopCloser(nil)}
	err := demoserver.ServeStdio(context.Background(), demoserver.New("atlas", 0), held, out)
	fmt.Println(strings.Contains(out.String(), `"name":"atlas"`), err)
	// Output: true <nil>
}

// firstLine keeps what is written, and ends its own reading after the first
// write: the client that has its answer leaves.
type firstLine struct {
	strings.Builder
	done chan struct{}
}

func (f *firstLine) Write(p []byte) (int, error) {
	defer func() {
		select {
		case <-f.done:
		default:
			close(f.done)
		}
	}()
	return f.Builder.Write(p)
}

func (f *firstLine) Read([]byte) (int, error) { <-f.done; return 0, io.EOF }
func (f *firstLine) Close() error             { return nil }
