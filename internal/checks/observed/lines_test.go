// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// The log contains each listing and each call, its outcome and its trace.
func TestLinesOfServers(t *testing.T) {
	core, kept := observer.New(zapcore.DebugLevel)
	all := turn(t, "sea__tides", watching{log: zap.New(core)})
	find := func(event, ensemble string) map[string]any {
		t.Helper()
		found := kept.FilterField(zap.String("event", event)).FilterField(zap.String("ensemble", ensemble)).All()
		if len(found) != 1 {
			t.Fatalf("%d lines of %s are %s", len(found), ensemble, event)
		}
		return found[0].ContextMap()
	}
	agent := one(t, all, "invoke_agent", "client")
	for _, tt := range []struct{ ensemble, tool, ended, code string }{
		{"sky", "weather", "mcp.call.succeeded", ""},
		{"sea", "tides", "mcp.call.failed", "NOT_FOUND"},
		{"land", "traffic", "mcp.call.succeeded", ""},
	} {
		connect := one(t, all, "connect "+tt.ensemble, "client")
		for _, event := range []string{"mcp.tools.list.started", "mcp.tools.list.succeeded"} {
			if line := find(event, tt.ensemble); line["trace_id"] != connect.Trace {
				t.Errorf("%s is not in the trace %s: %v", event, connect.Trace, line)
			}
		}
		place := map[bool]string{true: "Atlantis", false: "Oslo"}[tt.code != ""]
		begun, ended := find("mcp.call.started", tt.ensemble), find(tt.ended, tt.ensemble)
		for _, line := range []map[string]any{begun, ended} {
			if line["trace_id"] != agent.Trace || line["span_id"] == nil || line["conversation_id"] != "talk-1" ||
				line["tool"] != tt.tool || line["invocation"] == "" {
				t.Errorf("a line of the call of %s has %v", tt.tool, line)
			}
		}
		if begun["arguments"] != `{"place":"`+place+`"}` {
			t.Errorf("the call of %s begins with %v", tt.tool, begun)
		}
		if took, ok := ended["took"].(time.Duration); !ok || took <= 0 || tt.code != "" && ended["code"] != tt.code {
			t.Errorf("the call of %s ended with %v", tt.tool, ended)
		}
	}
}
