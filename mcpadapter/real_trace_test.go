// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
)

// TestRealTraced: a server without tracing is not disturbed by traces, and its questions
// are still in the trace of the call.
func TestRealTraced(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		t.Run(over.name, func(t *testing.T) {
			w := mcptest.RecordSpans(telemetry.Options{})
			ctx, root := w.StartRoot(t)
			options := mcpadapter.ClientOptions{Server: "everything", Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				return &invoker.ElicitResult{Action: invoker.Decline}, nil
			}}
			c, err := over.source(t, servers, options).Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			listing, err := c.List(ctx)
			if err != nil {
				t.Fatal(err)
			}
			said := map[string]string{}
			for _, tool := range listing.Invokers {
				name := tool.Definition().Name
				arguments := map[string]string{"echo": `{"message":"hello"}`, "get-sum": `{"a":2,"b":3}`, "trigger-elicitation-request": `{}`}[name]
				if arguments == "" {
					continue
				}
				out, err := tool.Invoke(ctx, mcptest.RawCall(arguments))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				said[name] = canister.TextOf(out.Content)
			}
			if said["echo"] != "Echo: hello" || said["get-sum"] != "The sum of 2 and 3 is 5." {
				t.Errorf("it said %q", said)
			}
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
			root.End()
			spans := w.Spans(t)
			call := mcptest.OneSpan(t, spans, "client", "tools/call trigger-elicitation-request")
			if question := mcptest.OneSpan(t, spans, "server", "elicitation/create"); question.Parent != call.ID ||
				question.Trace != root.SpanContext().TraceID().String() {
				t.Errorf("the question %+v, the call %+v", question, call)
			}
			call.Want(t, map[string]any{"mcp.protocol.version": "2025-11-25", "error.type": nil})
			mcptest.OneSpan(t, spans, "client", "initialize").Want(t, map[string]any{"mcp.protocol.version": "2025-11-25", "error.type": nil})
		})
	}
}
