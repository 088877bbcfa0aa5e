// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"testing"

	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"google.golang.org/grpc"
)

// TestSources runs the suite of sources over our own server.
func TestSources(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		at := newSite(t, ownServer(t))
		return ensembletest.Harness{
			Source:     grpctool.Source(at.address, plaintext()),
			Lose:       func() { at.kill(); at.start() },
			NoProgress: true,
		}
	})
}

// TestSourcesOverTheFake runs it over servers that know nothing but the original
// contract, by either name of the service.
func TestSourcesOverTheFake(t *testing.T) {
	for name, options := range map[string]grpctooltest.Options{
		"original":  {Services: []string{grpctool.OriginalService}},
		"ours, TLS": {Services: []string{grpctool.Service}, TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
				fake := grpctooltest.New(t, &options)
				fake.Offer(ensembletest.ServerTools()...)
				return ensembletest.Harness{
					Source:     grpctool.Source(fake.Address(), fake.ClientOptions()),
					Lose:       fake.DropConnections,
					NoProgress: true,
				}
			})
		})
	}
}

func ownServer(t *testing.T) func() *grpc.Server {
	return func() *grpc.Server {
		tools := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: ensembletest.ServerTools()})
		t.Cleanup(func() { _ = tools.Close(context.Background()) })
		server := grpc.NewServer()
		tools.Register(server)
		return server
	}
}
