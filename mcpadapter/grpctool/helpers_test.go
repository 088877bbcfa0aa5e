// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
)

// site is an address of a real socket for successive gRPC servers.
type site struct {
	t       *testing.T
	address string
	make    func() *grpc.Server

	mu     sync.Mutex
	server *grpc.Server
	served sync.WaitGroup
}

// newSite serves what make makes until the test ends.
func newSite(t *testing.T, make func() *grpc.Server) *site {
	t.Helper()
	s := &site{t: t, make: make, address: "127.0.0.1:0"}
	s.start()
	t.Cleanup(func() {
		s.kill()
		s.served.Wait()
	})
	return s
}

func (s *site) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = listener.Addr().String()
	server := s.make()
	s.server = server
	s.served.Go(func() { _ = server.Serve(listener) })
}

// kill ends the server with all its connections.
func (s *site) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Stop()
}

// windUp ends the server politely, in the background.
func (s *site) windUp() {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	s.served.Go(server.GracefulStop)
}

// scripted is a tool service whose answers the test gives, under a name.
type scripted struct {
	toolspb.UnimplementedMcpToolServiceServer
	list func(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error)
	call func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error)
}

func (s *scripted) ListTools(ctx context.Context, request *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
	if s.list == nil {
		return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "tool"}}}, nil
	}
	return s.list(ctx, request)
}

func (s *scripted) CallTool(ctx context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
	return s.call(ctx, request)
}

// under makes a server of gRPC that offers it as the service of a name.
func (s *scripted) under(name string, options ...grpc.ServerOption) func() *grpc.Server {
	return func() *grpc.Server {
		desc := toolspb.McpToolService_ServiceDesc
		desc.ServiceName = name
		server := grpc.NewServer(options...)
		server.RegisterService(&desc, s)
		return server
	}
}

// plaintext are the options for a server on this machine.
func plaintext() *grpctool.Options { return &grpctool.Options{Plaintext: true} }

func opened(t *testing.T, source ensemble.Source) ensemble.Connection {
	t.Helper()
	connection, err := source.Open(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// tool returns a tool of a connection.
func tool(t *testing.T, connection ensemble.Connection, name string) invoker.Invoker {
	t.Helper()
	listing, err := connection.List(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, inv := range listing.Invokers {
		if inv.Definition().Name == name {
			return inv
		}
	}
	t.Fatalf("there is no tool %q in %+v", name, listing)
	return nil
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing in a minute", what)
		panic("unreachable")
	}
}
