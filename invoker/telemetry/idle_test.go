// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/propagation"
)

// A Telemetry without providers makes nothing, and passes the context of a
// trace on all the same.
func TestIdle(t *testing.T) {
	idle, err := telemetry.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := idle.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent})
	ctx, served := idle.StartServing(ctx, telemetry.Call{Method: "tools/call"}, telemetry.Peer{})
	sent := propagation.MapCarrier{}
	if telemetry.Inject(ctx, sent); served != nil || sent["traceparent"] != parent {
		t.Errorf("it makes %v and passes %v on", served, sent)
	}
	if n := testing.AllocsPerRun(10, func() {
		_, agent := telemetry.StartAgent(ctx, "", telemetry.ModelInfo{})
		_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{})
		_, tool := telemetry.StartTool(ctx, telemetry.ToolCall{})
		_, request := telemetry.StartRequest(ctx, telemetry.Call{}, telemetry.Peer{})
		if agent != nil || chat != nil || tool != nil || request != nil {
			t.Error("it makes something")
		}
	}); n != 0 {
		t.Errorf("it makes %v allocations", n)
	}
}
