// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"fmt"
	"net"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Go functions are served, and called from the other side.
func Example() {
	ctx := context.Background()
	type query struct {
		Farmer string `json:"farmer_id"`
	}
	lookup, err := invoker.New("get_farmer", "Find a farmer.", func(_ context.Context, q query) (string, error) {
		return "Wanjiku, " + q.Farmer, nil
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{lookup}})
	go srv.Serve(ctx, listener)
	defer srv.Close(ctx)

	source := grpctool.Source(listener.Addr().String(), &grpctool.Options{Plaintext: true})
	farm := ensemble.New("farm", source, nil)
	defer farm.Close(ctx)
	tools, err := farm.Tools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := tools[0].Invoke(ctx, &invoker.Call{Arguments: []byte(`{"farmer_id":"WM-4521"}`)})
	fmt.Println(tools[0].Name(), canister.TextOf(output.Content), err)
	// Output: farm__get_farmer Wanjiku, WM-4521 <nil>
}

// A server whose certificate an authority of one's own vouches for, and that
// wants one from us too. Whom a call is for goes along as metadata.
func ExampleSource() {
	mutual, err := grpctool.TLSFiles("ca.pem", "advisor.pem", "advisor.key")
	if err != nil {
		fmt.Println(err)
		return
	}
	farm := ensemble.New("farm", grpctool.Source("tools.farm.internal:443", &grpctool.Options{
		TLS:             mutual,
		TrustedMetadata: map[string]string{"x-user-id": "user_id"},
	}), nil)
	defer farm.Close(context.Background())
}

// A server reached through the Dapr sidecar of this program.
func ExampleDapr() {
	plantation := ensemble.New("plantation", grpctool.Dapr("plantation-mcp", &grpctool.Options{
		Category: "search",
		Caller:   "advisor",
	}), nil)
	defer plantation.Close(context.Background())
	fmt.Println(plantation.Name())
	// Output: plantation
}

// A client of the MCP SDK over gRPC, and the server on the other side.
func ExampleDialMCP() {
	ctx := context.Background()
	clock, err := invoker.New("clock", "Tell the time.", func(context.Context, struct{}) (string, error) { return "noon", nil }, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	inner := server.New(nil, &server.Options{Tools: []invoker.Invoker{clock}})
	defer inner.Close(ctx)
	srv := grpctool.NewServer(nil, &grpctool.ServerOptions{MCP: inner})
	go srv.Serve(ctx, listener)
	defer srv.Close(ctx)

	link, err := grpctool.DialMCP(ctx, listener.Addr().String(), &grpctool.Options{Plaintext: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer link.Close(ctx)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil).Connect(ctx, link, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "clock"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output: noon
}

// A roster is served to clients that are known by their tokens.
func ExampleServer() {
	user := invoker.NewTrusted[string]("user_id")
	roster, err := ensemble.NewRoster( /* ensembles */ )
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := grpctool.NewServer(roster, &grpctool.ServerOptions{
		Authenticate: func(_ context.Context, token string) (string, []invoker.Value, error) {
			if token != "a token that somebody verified" {
				return "", nil, fmt.Errorf("nobody's token")
			}
			return "", []invoker.Value{user.Value("ada")}, nil
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	stop() // as a signal would, later
	fmt.Println(srv.Serve(ctx, listener))
	// Output: <nil>
}
