// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The clients of a gateway receive the instructions of the servers behind it, each with
// its author, after those of the gateway itself.
func TestInstructionsGoOut(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		saying := func(name, instructions string) *ensemble.Ensemble {
			source := ensembletest.NewSource(ensembletest.Echo())
			source.Peer.Instructions = instructions
			return ensemble.New(name, source, nil)
		}
		broken := ensembletest.NewSource()
		broken.Fail(ensembletest.Open, 100, errors.New("broken"))
		long := strings.Repeat("é", 5000)
		roster := mcptest.Roster(t, saying("one", "Use\u202e wisely.\nOften."), ensemble.New("broken", broken, nil), saying("two", long),
			saying("three", long), saying("four", long), saying("five", long), saying("none", ""))
		srv := server.New(roster, &server.Options{Instructions: "Its own."})
		t.Cleanup(func() { _ = srv.Close(context.Background()) })
		said := connect(srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil)).InitializeResult().Instructions
		if !strings.HasPrefix(said, "Its own.\n\nThe server \"one\" says about its tools:\n> Use wisely.\n> Often.\n\nThe server \"two\" says") {
			t.Errorf("it begins with %.200s", said)
		}
		if n := strings.Count(said, "é"); n > ensemble.MaxAllInstructions || n < ensemble.MaxAllInstructions-100 ||
			strings.Count(said, "\n[1000 of 5000 characters omitted]") != 3 || strings.Count(said,
			" of 5000 characters omitted]") != 4 || strings.Contains(said, `"none"`) {
			t.Errorf("%d characters: %s", n, strings.ReplaceAll(said, "é", ""))
		}
	})
}
