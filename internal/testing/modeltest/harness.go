// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// closer is a model that has connections.
type closer interface {
	converse.Model
	Close() error
}

// NewHarness returns a model for the suite of package conversetest: open makes it, for the
// base URL of a server that answers each line with a reply. The server counts assistant
// messages as the suite does.
func NewHarness[M closer](t *testing.T, lines []conversetest.Line, reply func(conversetest.Line) openaiserver.Reply, open func(url string) (M, error)) conversetest.Harness {
	var script openaiserver.Script
	for _, line := range lines {
		script.Steps = append(script.Steps, openaiserver.Step{Reply: reply(line)})
	}
	server, err := openaiserver.Start(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, err := open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	received := func() string {
		requests := server.Requests()
		return string(requests[len(requests)-1].Body)
	}
	return conversetest.Harness{Model: model, Received: received}
}
