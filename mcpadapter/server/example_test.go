// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
)

// A program that an MCP host starts, and speaks to over its standard streams.
func ExampleServer_Serve() {
	roster, err := ensemble.NewRoster(mcpadapter.Command("files", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer roster.Close(ctx)
	srv := server.New(roster, &server.Options{Name: "gateway"})
	defer srv.Close(ctx)
	if err := srv.Serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A tool acts for whoever the token belongs to, and no argument changes that.
func ExampleServer_Handler() {
	user := invoker.NewTrusted[string]("user")
	whoami, err := invoker.New("whoami", "Say who asks.", func(ctx context.Context, _ struct{}) (string, error) {
		name, _ := user.From(ctx)
		return "You are " + name + ".", nil
	}, &invoker.Options{Needs: []invoker.Need{user}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	roster, _ := ensemble.NewRoster(ensemble.Local("desk", whoami))
	defer roster.Close(ctx)
	srv := server.New(roster, &server.Options{
		Authenticate: func(_ context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
			if token != "ada's token" {
				return "", nil, errors.New("nobody's token")
			}
			return "", []invoker.Value{user.Value("Ada")}, nil
		},
	})
	defer srv.Close(ctx)
	listener := httptest.NewServer(srv.Handler())
	defer listener.Close()

	client, _ := ensemble.NewRoster(ensemble.New("remote", mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{BearerToken: "ada's token"}), nil))
	defer client.Close(ctx)
	catalog, err := client.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range catalog.Tools() {
		output, err := tool.Invoke(ctx, &invoker.Call{})
		fmt.Println(tool.Name(), canister.TextOf(output.Content), err)
	}
	// Output: remote__desk__whoami You are Ada. <nil>
}
