// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Each request has one line: of the tool service, of MCP in frames, and of a client that
// is refused. No line has a token or an argument.
func TestAccessLog(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	tools := []invoker.Invoker{
		ensembletest.NewTool("works", func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }),
		ensembletest.NewTool("fails", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, invoker.Failf(invoker.Denied, "no")
		}),
	}
	overMCP := server.New(nil, &server.Options{Tools: tools, Logger: zap.New(core), AccessLog: true})
	s := serve(t, &grpctool.ServerOptions{
		Tools: tools, MCP: overMCP, Logger: zap.New(core), AccessLog: true,
		Tokens: []grpctool.BearerToken{{Token: "the-token-of-ada", Name: "laptop"}},
	})
	as := func(token string) *grpctool.Options { return &grpctool.Options{Plaintext: true, BearerToken: token} }
	connection := opened(t, grpctool.Source(s.address, as("the-token-of-ada")))
	for _, name := range []string{"works", "fails"} {
		_, _ = tool(t, connection, name).Invoke(within(t), &invoker.Call{Arguments: []byte(`{"secret":"quokka"}`)})
	}
	if _, err := grpctool.Source(s.address, as("the-token-of-eve")).Open(within(t)); err == nil {
		t.Error("a wrong token is accepted")
	}
	client := session(t, dialed(t, s.address, as("the-token-of-ada")), nil)
	if _, err := client.CallTool(within(t), &mcp.CallToolParams{Name: "works"}); err != nil {
		t.Error(err)
	}
	_ = client.Close()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	_ = overMCP.Close(within(t))
	count := map[string]int{}
	for _, entry := range logged.All() {
		line := entry.ContextMap()
		if line["event"] == "serve.request.ended" {
			if text := fmt.Sprint(line); strings.Contains(text, "the-token-of") || strings.Contains(text, "quokka") {
				t.Errorf("a line reveals a token or an argument: %s", text)
			}
			count[fmt.Sprint(
				line["transport"], " ", line["from"], " ", line["client_name"], " ", line["method"], " ", line["tool"], " ",
				line["code"], " ", line["grpc_status"],
			)]++
		}
	}
	for _, want := range []string{
		"grpc 127.0.0.1 laptop tools/call works <nil> OK",
		"grpc 127.0.0.1 laptop tools/call fails DENIED OK",
		"grpc 127.0.0.1 <nil> ListTools <nil> <nil> UNAUTHENTICATED",
		"grpc 127.0.0.1 laptop tools/call works <nil> <nil>", // within the stream
		"grpc 127.0.0.1 laptop Connect <nil> <nil> OK",
	} {
		if count[want] != 1 {
			t.Errorf("%d lines %q among %v", count[want], want, count)
		}
	}
	if count["grpc 127.0.0.1 laptop tools/list <nil> <nil> OK"] == 0 {
		t.Errorf("no line of a list among %v", count)
	}
}

// The name of a client's certificate is in the audit record; the name of its token takes
// precedence.
func TestNamesOfCertificates(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("server")
	ours, oursKey := ca.issue("advisor")
	kept := new(records)
	s := serve(t, &grpctool.ServerOptions{
		Tools: []invoker.Invoker{ensembletest.NewTool("works", func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil })},
		TLS:   tlsFiles(t, ca.file, certificate, key),
		Certificate: func(_ context.Context, c *x509.Certificate) (string, []invoker.Value, error) {
			return "the " + c.Subject.CommonName, nil, nil
		},
		Tokens: []grpctool.BearerToken{{Token: "ada-token", Name: "laptop"}},
		Audit:  audit.New(kept, nil),
	})
	for _, token := range []string{"", "ada-token"} {
		connection := opened(t, grpctool.Source(s.address, &grpctool.Options{TLS: tlsFiles(t, ca.file, ours, oursKey), BearerToken: token}))
		if _, err := tool(t, connection, "works").Invoke(within(t), &invoker.Call{}); err != nil {
			t.Error(err)
		}
	}
	var names []string
	for _, record := range kept.kept {
		names = append(names, record.ClientName)
	}
	if !slices.Equal(names, []string{"the advisor", "laptop"}) {
		t.Errorf("the names are %q", names)
	}
}
