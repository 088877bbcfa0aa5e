// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// A resolver that has calls sent again, as control planes may (gRPC A6), is not
// heeded: gRPC does not know which tools can bear it.
func TestServiceConfigsAreNotRead(t *testing.T) {
	const config = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.001s","maxBackoff":"0.001s",` +
		`"backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	var calls atomic.Int32
	at := newSite(t, (&scripted{call: func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		calls.Add(1)
		return nil, status.Error(codes.Unavailable, "try again")
	}}).under(grpctool.Service))
	plane := manual.NewBuilderWithScheme("plane")
	plane.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		_ = cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: at.address}}, ServiceConfig: cc.ParseServiceConfig(config)})
	}
	resolver.Register(plane)

	inv := tool(t, opened(t, grpctool.Source("plane:///tools", plaintext())), "tool")
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.OutcomeUnknown || calls.Load() != 1 {
		t.Errorf("%v after %d calls", failure, calls.Load())
	}
	// And it would be heeded by gRPC.
	conn, err := grpc.NewClient("plane:///tools", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	calls.Store(0)
	if _, err := toolspb.NewMcpToolServiceClient(conn).CallTool(within(t), &toolspb.ToolCallRequest{}); err == nil || calls.Load() != 4 {
		t.Errorf("gRPC alone: %v after %d calls", err, calls.Load())
	}
}
