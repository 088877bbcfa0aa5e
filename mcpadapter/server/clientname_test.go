// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// The name that a token was given stands in the audit record and in the log of a
// call that failed. A token without a name has none there.
func TestNamesOfClients(t *testing.T) {
	for _, protocol := range mcptest.Protocols {
		t.Run(protocol, func(t *testing.T) {
			kept := make(keeps, 1)
			core, logged := observer.New(zap.DebugLevel)
			fails := rawTool(t, invoker.Definition{Name: "fails"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
				return invoker.Output{}, invoker.Failf(invoker.Denied, "no")
			})
			srv := newServer(t, &server.Options{
				Logger: zap.New(core), Audit: audit.New(kept, nil),
				Tokens: []server.BearerToken{{Token: "the-token-of-ada", Name: "ada's laptop"}, {Token: "the-token-of-ben"}},
			}, fails)
			web := httptest.NewServer(srv.Handler())
			t.Cleanup(web.Close)
			for token, want := range map[string]string{"the-token-of-ada": "ada's laptop", "the-token-of-ben": ""} {
				conn := mcptest.Open(t, mcpadapter.HTTP(web.URL,
					&mcpadapter.HTTPOptions{BearerToken: token, ClientOptions: mcpadapter.ClientOptions{Protocol: protocol}}))
				_, _ = mcptest.Tool(t, conn, "local__fails").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
				if record := mcptest.Await(t, "the record", kept); record.ClientName != want {
					t.Errorf("the record has the name %q, want %q", record.ClientName, want)
				}
			}
			named := logged.FilterField(zap.String("client_name", "ada's laptop")).Len()
			if lines := logged.FilterFieldKey("client_name").Len(); named != 1 || lines != 1 {
				t.Errorf("%d lines of the log have a name, %d the right one", lines, named)
			}
		})
	}
}
