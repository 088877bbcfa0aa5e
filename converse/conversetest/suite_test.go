// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
)

// server is a model made of scripts that answers as the suite wants it: a
// request with n assistant messages gets line n.
type server struct {
	lines []conversetest.Line

	mu       sync.Mutex
	received string
}

func (s *server) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	s.mu.Lock()
	s.received = describe(request)
	s.mu.Unlock()
	return conversetest.NewScript(s.lines[assistants(request)]).Exchange(ctx, request)
}

func (s *server) lastReceived() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

func assistants(request *converse.Request) int {
	n := 0
	for _, c := range request.History {
		if c.Kind() == canister.KindAssistant {
			n++
		}
	}
	return n
}

// describe returns the parts of a request that a model sends to its server.
func describe(request *converse.Request) string {
	text := fmt.Sprintln(request.NoInvocations, request.MaxTokens, request.Stop)
	if request.Temperature != nil {
		text += fmt.Sprintln(*request.Temperature)
	}
	for _, c := range request.History {
		head := c.Header()
		head.Metadata = nil
		line, err := canister.Marshal(canister.WithHead(c, head))
		text += fmt.Sprintln(string(line), err)
	}
	for _, definition := range request.Tools.Definitions {
		text += fmt.Sprintln(definition.Name, definition.Description, string(definition.InputSchema))
	}
	return text
}

func TestScriptPassesSuite(t *testing.T) {
	conversetest.TestModel(t, func(_ *testing.T, lines []conversetest.Line) conversetest.Harness {
		s := &server{lines: lines}
		return conversetest.Harness{Model: s, Received: s.lastReceived}
	})
}
