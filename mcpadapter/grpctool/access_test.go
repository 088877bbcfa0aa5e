// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// After SetAccess a new token works and an old one does not. The stream of a client
// without a token finishes its call and ends; that of another client continues.
func TestSetAccess(t *testing.T) {
	begun, open := make(chan struct{}, 1), make(chan struct{})
	work := ensembletest.NewTool("work", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		begun <- struct{}{}
		select {
		case <-open:
		case <-ctx.Done():
			return invoker.Output{}, ctx.Err()
		}
		return invoker.Output{Content: canister.Texts("done")}, nil
	})
	s := mcpServer(t, &grpctool.ServerOptions{Tokens: []grpctool.BearerToken{{Token: "ada-token"}, {Token: "ben-token"}}}, work)
	client := func(token string) *mcp.ClientSession {
		return session(t, dialed(t, s.address, &grpctool.Options{Plaintext: true, BearerToken: token}), nil)
	}
	ada, ben := client("ada-token"), client("ben-token")
	result := make(chan error, 1)
	go func() {
		_, err := ben.CallTool(within(t), &mcp.CallToolParams{Name: "work"})
		result <- err
	}()
	<-begun
	s.SetAccess(&grpctool.ServerOptions{Tokens: []grpctool.BearerToken{{Token: "ada-token"}, {Token: "eve-token"}}})
	for token, want := range map[string]codes.Code{"ada-token": codes.OK, "ben-token": codes.Unauthenticated, "eve-token": codes.OK} {
		ctx := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer "+token)
		if _, err := toolspb.NewMcpToolServiceClient(raw(t, s.address)).ListTools(ctx, new(toolspb.ListToolsRequest)); status.Code(err) != want {
			t.Errorf("%s: %v", token, err)
		}
	}
	close(open)
	if err := await(t, "the running call", result); err != nil {
		t.Errorf("the running call: %v", err)
	}
	_ = ben.Wait()
	if err := ada.Ping(within(t), nil); err != nil {
		t.Errorf("the stream of a client who keeps its token: %v", err)
	}
}

// After SetAccess the stream of a client whose secret value was replaced ends, although the
// client is the same, and a new one has the new value. That of another client continues.
func TestSecretValuesChange(t *testing.T) {
	key := invoker.NewTrusted[string]("key")
	tell := ensembletest.NewTool("tell", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		value, _ := key.From(ctx)
		return invoker.Output{Content: canister.Texts(value)}, nil
	})
	with := func(value string) *grpctool.ServerOptions {
		return &grpctool.ServerOptions{Tokens: []grpctool.BearerToken{
			{Token: "ada-token", Name: "ada", Trusted: []invoker.Value{key.Value(value).Secret()}}, {Token: "ben-token", Name: "ben"}}}
	}
	s := mcpServer(t, with("first"), tell)
	client := func(token string) *mcp.ClientSession {
		return session(t, dialed(t, s.address, &grpctool.Options{Plaintext: true, BearerToken: token}), nil)
	}
	told := func(ada *mcp.ClientSession) string {
		t.Helper()
		result, err := ada.CallTool(within(t), &mcp.CallToolParams{Name: "tell"})
		if err != nil {
			t.Fatal(err)
		}
		return result.Content[0].(*mcp.TextContent).Text
	}
	ada, ben := client("ada-token"), client("ben-token")
	if got := told(ada); got != "first" {
		t.Errorf("the tool has %q", got)
	}
	s.SetAccess(with("second"))
	ended := make(chan error, 1)
	go func() { ended <- ada.Wait() }()
	_ = await(t, "the end of the stream with the old value", ended)
	if got := told(client("ada-token")); got != "second" {
		t.Errorf("on a new stream the tool has %q", got)
	}
	if err := ben.Ping(within(t), nil); err != nil {
		t.Errorf("the stream of another client: %v", err)
	}
}
