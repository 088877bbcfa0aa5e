// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A notification is answered before it is read. It still takes effect: the one with which
// a client starts a session.
func TestNotificationsOutliveTheirRequests(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	srv := newServer(t, &server.Options{Logger: zap.New(core)}, adder(t))
	for range 20 {
		session := connectHTTP(t, srv, mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil), mcptest.Protocols[1])
		if err := session.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range logs.All() {
		t.Errorf("the server logs %q %v", entry.Message, entry.ContextMap())
	}
}
