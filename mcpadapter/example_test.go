// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that runs as a subprocess. It starts when it is first needed.
func ExampleCommand() {
	files := mcpadapter.Command("files", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp")
	defer files.Close(context.Background())
	fmt.Println(files.Name())
	// Output: files
}

// A server in this program, called without a conversation around it.
func ExampleInMemory() {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0"}, nil)
	type name struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in name) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
	})

	ctx := context.Background()
	connection, err := mcpadapter.InMemory(server, nil).Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer connection.Close(ctx)
	listing, err := connection.List(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := listing.Invokers[0].Invoke(ctx, &invoker.Call{Arguments: []byte(`{"name":"Ada"}`)})
	fmt.Println(connection.Peer().Name, canister.TextOf(output.Content), err)
	// Output: greeter Hello, Ada! <nil>
}

// A remote server with a token, its own time-outs and only some of its tools.
func ExampleHTTP() {
	source := mcpadapter.HTTP("https://example.com/mcp", &mcpadapter.HTTPOptions{
		Headers: map[string]string{"X-Tenant": "acme"},
		Token:   func(context.Context) (string, error) { return "a token that is fresh", nil },
	})
	database := ensemble.New("database", source, &ensemble.Options{
		CallTimeout: time.Minute,
		Allow:       []string{"query_*"},
	})
	defer database.Close(context.Background())
	fmt.Println(database.Name())
	// Output: database
}

// A subprocess that is given a directory, an environment and a way to ask the
// person.
func ExampleStdio() {
	source := mcpadapter.Stdio([]string{"python", "-m", "weather_mcp_server"}, &mcpadapter.StdioOptions{
		ClientOptions: mcpadapter.ClientOptions{
			Elicit: func(_ context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				fmt.Println(question.Message)
				return &invoker.ElicitResult{Action: invoker.Decline}, nil
			},
		},
		Environment: map[string]string{"WEATHER_API_KEY": "from the configuration"},
		Directory:   "/srv/weather",
	})
	weather := ensemble.New("weather", source, &ensemble.Options{ConnectTimeout: mcpadapter.CommandConnectTimeout})
	defer weather.Close(context.Background())
	fmt.Println(weather.Name())
	// Output: weather
}
