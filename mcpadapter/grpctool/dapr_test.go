// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/sidecar"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"github.com/consort-go/consort/mcpadapter/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// newSidecar serves a sidecar in front of two applications; only one has tools.
func newSidecar(t *testing.T, token string) *site {
	t.Helper()
	plantation := grpctooltest.New(t, &grpctooltest.Options{Services: []string{grpctool.OriginalService}})
	plantation.Offer(ensembletest.ServerTools()...)
	applications := make(map[string]*grpc.ClientConn)
	for name, address := range map[string]string{
		"plantation-mcp": plantation.Address(),
		"mailer":         newSite(t, func() *grpc.Server { return grpc.NewServer() }).address,
	} {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		applications[name] = conn
	}
	return newSite(t, func() *grpc.Server { return sidecar.New(token, applications) })
}

func clearDapr(t *testing.T) {
	t.Helper()
	for _, name := range []string{"DAPR_GRPC_ENDPOINT", "DAPR_GRPC_PORT", "DAPR_API_TOKEN"} {
		t.Setenv(name, "")
	}
}

func TestDapr(t *testing.T) {
	clearDapr(t)
	at := newSidecar(t, "sidecar-token")
	_, port, err := net.SplitHostPort(at.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DAPR_GRPC_PORT", port)
	t.Setenv("DAPR_API_TOKEN", "sidecar-token")
	connection := opened(t, grpctool.Dapr("plantation-mcp", nil))
	output, err := tool(t, connection, "echo").Invoke(within(t), &invoker.Call{Arguments: []byte(`{"text":"through the sidecar"}`)})
	if err != nil || canister.TextOf(output.Content) != "through the sidecar" {
		t.Errorf("echo came to %v, %v", output, err)
	}
	if got := connection.Peer().Name; got != "plantation-mcp" {
		t.Errorf("the peer is called %q", got)
	}
	for name, want := range map[string]invoker.Code{"mailer": invoker.Protocol, "nobody": invoker.Unavailable} {
		_, err := grpctool.Dapr(name, nil).Open(within(t))
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != want {
			t.Errorf("the application %q: %v", name, err)
		}
	}
	at.kill()
	if _, err := grpctool.Dapr("plantation-mcp", nil).Open(within(t)); err == nil || !strings.Contains(err.Error(), "Dapr sidecar at "+at.address) {
		t.Errorf("without a sidecar: %v", err)
	}
	at.start()
	t.Setenv("DAPR_API_TOKEN", "")
	_, err = grpctool.Dapr("plantation-mcp", nil).Open(within(t))
	if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("without the sidecar's token: %v", err)
	}
}

// The suite of sources, with a sidecar in between.
func TestSourcesBehindASidecar(t *testing.T) {
	clearDapr(t)
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		at := newSidecar(t, "")
		t.Setenv("DAPR_GRPC_ENDPOINT", "http://"+at.address)
		return ensembletest.Harness{
			Source:     grpctool.Dapr("plantation-mcp", nil),
			Lose:       func() { at.kill(); at.start() },
			NoProgress: true,
		}
	})
}

func TestWrongDapr(t *testing.T) {
	clearDapr(t)
	token := "sidecar-secret"
	for endpoint, want := range map[string]string{
		"ftp://sidecar":             "scheme \"ftp\"",
		"http://[sidecar":           "not a URL",
		"http://sidecar.example:80": "unencrypted",
		"sidecar.example:4443":      "unencrypted",
	} {
		t.Setenv("DAPR_GRPC_ENDPOINT", endpoint)
		t.Setenv("DAPR_API_TOKEN", token)
		_, err := grpctool.Dapr("app", nil).Open(within(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, want %q", endpoint, err, want)
		}
	}
	t.Setenv("DAPR_GRPC_ENDPOINT", "")
	if _, err := grpctool.Dapr("", nil).Open(context.Background()); err == nil || !strings.Contains(err.Error(), "name of the Dapr application is empty") {
		t.Errorf("an application without a name: %v", err)
	}
}

// MCP goes through the sidecar like anything else, and the suite of sources with it.
func TestMCPBehindASidecar(t *testing.T) {
	clearDapr(t)
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		inner := server.New(nil, &server.Options{Tools: ensembletest.ServerTools()})
		t.Cleanup(func() { _ = inner.Close(context.Background()) })
		srv := grpctool.NewServer(nil, &grpctool.ServerOptions{MCP: inner})
		conn, err := grpc.NewClient(registered(t, srv), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		at := newSite(t, func() *grpc.Server { return sidecar.New("", map[string]*grpc.ClientConn{"stage": conn}) })
		t.Setenv("DAPR_GRPC_ENDPOINT", "http://"+at.address)
		return ensembletest.Harness{
			Source: grpctool.DaprMCP("stage", nil, nil),
			Lose:   func() { at.kill(); at.start() },
		}
	})
}

func TestWrongDaprMCP(t *testing.T) {
	clearDapr(t)
	at := newSidecar(t, "")
	t.Setenv("DAPR_GRPC_ENDPOINT", "http://"+at.address)
	for name, want := range map[string]string{"mailer": "PROTOCOL", "nobody": "UNAVAILABLE", "": "name of the Dapr application is empty"} {
		if _, err := grpctool.DaprMCP(name, nil, nil).Open(within(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the application %q: %v", name, err)
		}
	}
}
