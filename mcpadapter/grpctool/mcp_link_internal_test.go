// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// deafMCP accepts a client and does not read its messages.
type deafMCP struct {
	toolspb.UnimplementedMcpServiceServer
}

func (deafMCP) Connect(stream frames) error {
	if err := stream.Send(&toolspb.ConnectResponse{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// A server that takes no message in a minute loses the link, also if the context of
// the message has no end.
func TestMCPLinkIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, server := bufconn.Listen(1<<16), grpc.NewServer()
		toolspb.RegisterMcpServiceServer(server, deafMCP{})
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		s := at("passthrough:///stage", &Options{Plaintext: true})
		s.dial = func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
		link, err := s.stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		connection, err := link.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		params, _ := json.Marshal(strings.Repeat("x", 1<<20))
		long := &jsonrpc.Request{Method: "notifications/progress", Params: params}
		began := time.Now()
		for err == nil && time.Since(began) < time.Hour {
			err = connection.Write(t.Context(), long)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		if _, err := connection.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "stopped reading") {
			t.Errorf("Read: %v", err)
		}
		_ = link.Close(t.Context())
		server.Stop()
		<-served
	})
}
