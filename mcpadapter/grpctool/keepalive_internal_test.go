// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// silentNetwork stops delivering data at some moment without an error.
type silentNetwork struct {
	net.Conn
	silent *atomic.Bool
}

func (n silentNetwork) Write(p []byte) (int, error) {
	if n.silent.Load() {
		return len(p), nil
	}
	return n.Conn.Write(p)
}

// busy is a service whose one tool works until its call ends.
type busy struct {
	toolspb.UnimplementedMcpToolServiceServer
	begun chan struct{}
}

func (busy) ListTools(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
	return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "work"}}}, nil
}

func (b busy) CallTool(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
	close(b.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A server that goes silent during a call is abandoned: after KeepAlive a ping is sent,
// and 20 s later the connection is lost.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		listener, service := bufconn.Listen(1<<16), busy{begun: make(chan struct{})}
		server := grpc.NewServer()
		toolspb.RegisterMcpToolServiceServer(server, service)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()

		silent := new(atomic.Bool)
		s := at("passthrough:///stage", &Options{Plaintext: true, KeepAlive: 15 * time.Second})
		s.dial = func(ctx context.Context, _ string) (net.Conn, error) {
			if silent.Load() {
				return nil, context.DeadlineExceeded
			}
			conn, err := listener.DialContext(ctx)
			return silentNetwork{conn, silent}, err
		}
		connection, err := s.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		listing, err := connection.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		go func() {
			<-service.begun
			silent.Store(true)
		}()
		_, err = listing.Invokers[0].Invoke(ctx, &invoker.Call{})
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.OutcomeUnknown {
			t.Errorf("the call came to %v", err)
		}
		if took := time.Since(start); took < 35*time.Second || took > 51*time.Second {
			t.Errorf("it took %v", took)
		}
		<-connection.Lost()
		if err := connection.Close(ctx); err != nil {
			t.Error(err)
		}
		server.Stop()
		<-served
	})
}
