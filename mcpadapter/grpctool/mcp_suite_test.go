// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"slices"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/server"
	"google.golang.org/grpc"
)

// TestMCPSources runs the whole suite of sources, progress, changes, resources
// and prompts included, over MCP in frames of gRPC.
func TestMCPSources(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness { return mcpHarness(t, protocol) })
		})
	}
}

func mcpHarness(t *testing.T, protocol string) ensembletest.Harness {
	t.Helper()
	stage := ensembletest.NewSource(ensembletest.ServerTools()...)
	library := ensembletest.ServerLibrary(new(local.Updates))
	stage.SetLibrary(library)
	roster := rosterOf(t, ensemble.New("stage", stage, nil))
	if err := roster.Connect(within(t)); err != nil { // nothing is reported about unused servers
		t.Fatal(err)
	}
	at := newSite(t, func() *grpc.Server {
		inner := server.New(roster, &server.Options{OwnNames: true})
		srv := grpctool.NewServer(nil, &grpctool.ServerOptions{MCP: inner})
		t.Cleanup(func() {
			_ = srv.Close(context.Background())
			_ = inner.Close(context.Background())
		})
		on := grpc.NewServer()
		srv.Register(on)
		return on
	})
	return ensembletest.Harness{
		Source: grpctool.MCP(at.address, plaintext(), &mcpadapter.ClientOptions{Protocol: protocol}),
		Lose:   func() { at.kill(); at.start() },
		Change: func() {
			tools := ensembletest.ServerTools()
			for i, tool := range tools {
				if tool.Definition().Name == "fail" {
					tools[i] = ensembletest.Returns("late", "late")
				}
			}
			stage.SetTools(tools...)
		},
		Library: true,
		Update:  func() { stage.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"}) },
		ChangeLibrary: func() {
			changed := library
			changed.Resources = append(slices.Clone(library.Resources), ensembletest.TextResource("test://late", "late"))
			stage.SetLibrary(changed)
		},
	}
}
