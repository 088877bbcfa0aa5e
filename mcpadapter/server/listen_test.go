// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that is told to end lets a call finish, and then nothing listens.
func TestServeListener(t *testing.T) {
	gate := ensembletest.NewGate("gate", false)
	roster, err := ensemble.NewRoster(ensemble.Local("local", gate))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	srv := server.New(roster, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeListener(ctx, listener) }()
	url := "http://" + listener.Addr().String()
	session := connectClient(t, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil),
		&mcp.StreamableClientTransport{Endpoint: url + "/mcp", MaxRetries: -1, DisableStandaloneSSE: true}, "2025-11-25")
	answered := make(chan error, 1)
	go func() {
		_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "local__gate"})
		answered <- err
	}()
	<-gate.Begun
	stop()
	gate.Release("done")
	if err := <-answered; err != nil {
		t.Errorf("the call did not finish: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("somebody listens")
	}
	if err := srv.ListenAndServe(t.Context(), "no address"); err == nil {
		t.Error("no error for what is no address")
	}
}
