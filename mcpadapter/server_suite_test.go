// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/mcpadapter"
)

// TestServerSources runs the suite of sources over servers of this package,
// whose clients are those of this package: what a gateway of gateways is made of.
func TestServerSources(t *testing.T) {
	for _, protocol := range protocols {
		for _, stateless := range []bool{false, true} {
			if stateless && protocol != protocols[0] {
				continue // without sessions there are no news for older clients
			}
			t.Run(protocol+"/stateless="+strconv.FormatBool(stateless), func(t *testing.T) {
				ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
					return servedHarness(t, mcpadapter.ClientOptions{Protocol: protocol}, stateless)
				})
			})
		}
	}
}

// servedHarness serves what the suite wants over HTTP.
func servedHarness(t *testing.T, client mcpadapter.ClientOptions, stateless bool) ensembletest.Harness {
	source := ensembletest.NewSource(ensembletest.ServerTools()...)
	roster, err := ensemble.NewRoster(ensemble.New("suite", source, nil))
	if err != nil {
		t.Fatal(err)
	}
	server := mcpadapter.NewServer(roster, &mcpadapter.ServerOptions{
		Name: "suite", Title: "The Suite", Version: "1.2", Instructions: "Call wait last.", OwnNames: true, Stateless: stateless,
	})
	listener := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is to end
		if err := server.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		listener.CloseClientConnections()
		listener.Close()
		_ = roster.Close(context.Background())
	})
	return ensembletest.Harness{
		Source: mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{ClientOptions: client}),
		Change: func() {
			late := suiteTool("late")
			tools := ensembletest.ServerTools()
			source.SetTools(tools[0], tools[2], tools[3], late)
		},
	}
}
