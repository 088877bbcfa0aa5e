// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// noon is when the spans of these tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// stub is a span of trace with an id, below parent (0 for none), that begins so
// many ms after noon and takes so long.
func stub(trace_, id, parent byte, name string, after, took time.Duration, attributes ...attribute.KeyValue) tracetest.SpanStub {
	context := func(id byte) trace.SpanContext {
		if id == 0 {
			return trace.SpanContext{}
		}
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: trace_}, SpanID: trace.SpanID{7: id}, TraceFlags: trace.FlagsSampled})
	}
	return tracetest.SpanStub{
		Name: name, SpanContext: context(id), Parent: context(parent),
		StartTime: noon.Add(after * time.Millisecond), EndTime: noon.Add(after*time.Millisecond + took), Attributes: attributes,
	}
}

func faulty(s tracetest.SpanStub, kind, description string) tracetest.SpanStub {
	s.Attributes = append(s.Attributes, attribute.String("error.type", kind))
	s.Status = sdk.Status{Code: codes.Error, Description: description}
	return s
}

func TestTraceText(t *testing.T) {
	tokens := func(in, out int) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.Int("gen_ai.usage.input_tokens", in), attribute.Int("gen_ai.usage.output_tokens", out)}
	}
	server := []attribute.KeyValue{attribute.String("server.address", "::1"), attribute.Int("server.port", 443), attribute.String("consort.ensemble", "far")}
	spans := tracetest.SpanStubs{ // in the order of their ends
		stub(2, 21, 20, "tools/list", 2, 900*time.Microsecond, attribute.Int("consort.tools.count", 1),
			attribute.Int("consort.tools.aside", 2), attribute.String("network.transport", "pipe")),
		stub(2, 20, 0, "connect near", 1, 9996*time.Microsecond, attribute.String("consort.ensemble", "near")),
		stub(1, 2, 1, "chat m", 0, 520*time.Millisecond, append(tokens(212, 31), attribute.StringSlice("gen_ai.response.finish_reasons", []string{"tool_call"}),
			attribute.Float64("gen_ai.response.time_to_first_chunk", 0.2104))...),
		faulty(stub(1, 6, 5, "tools/call \x1b[2Jadd\nit", 531, 99*time.Millisecond, server...), "tool_error", "no\nroom"),
		faulty(stub(1, 5, 1, "execute_tool far__add", 530, 100*time.Millisecond), "TIMEOUT", "TIMEOUT"),
		stub(1, 4, 3, "tools/call 天気", 525, 101*time.Millisecond),
		stub(1, 3, 1, "execute_tool near__天気", 525, 102*time.Millisecond),
		stub(1, 7, 99, "tools/call late", 540, time.Hour), // its parent goes on
		stub(1, 1, 0, "invoke_agent", 0, 1240*time.Millisecond, append(tokens(472, 43), attribute.String("consort.turn.reason", "answered"),
			attribute.Int("consort.turn.exchanges", 2), attribute.Int("consort.turn.invocations", 1),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}))...),
	}
	const want = `
trace 00000000000000000000000000000001
  invoke_agent                       1.24 s  answered, 2 exchanges, 1 invocation, 472 tokens in, 43 out
  ├ chat m                           520 ms  tool_call, 212 tokens in, 31 out, first after 210 ms
  ├ execute_tool near__天気          102 ms` + "  " + `
  │ └ tools/call 天気                101 ms` + "  " + `
  └ execute_tool far__add            100 ms  TIMEOUT
    └ tools/call <U+001B>[2Jadd it  99.0 ms  tool_error: no room, far, [::1]:443
  tools/call late                    3600 s` + "  " + `

trace 00000000000000000000000000000002
  connect near  10.0 ms  near
  └ tools/list  0.90 ms  1 tool, 2 set aside, stdio
… and 3 more spans
`
	if got := SpanTree(spans.Snapshots(), 3, paletteFor(output(t))); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
	if got := SpanTree(nil, 0, paletteFor(output(t))); !strings.Contains(got, "no spans;") {
		t.Errorf("nothing is shown as %q", got)
	}
}

func TestTookText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 ms", 9994 * time.Microsecond: "9.99 ms", 9995 * time.Microsecond: "10.0 ms", 99949 * time.Microsecond: "99.9 ms",
		999499 * time.Microsecond: "999 ms", 999500 * time.Microsecond: "1.00 s", time.Minute: "60.0 s", -time.Millisecond: "-1.00 ms",
	} {
		if got := tookText(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
