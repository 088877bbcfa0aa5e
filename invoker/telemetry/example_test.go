// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

type city struct {
	Name string `json:"name"`
}

// A program makes a Telemetry from its providers, and gives it to what begins
// work: here a conversation, from where it goes along with every call.
func Example() {
	spans := tracetest.NewInMemoryExporter() // a program has one of OTLP
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer tracers.Shutdown(context.Background())
	instruments, err := telemetry.New(&telemetry.Options{Tracers: tracers, Meters: otel.GetMeterProvider()})
	if err != nil {
		panic(err)
	}
	weather, err := invoker.New("weather", "Report today's weather.", func(context.Context, city) (string, error) { return "rain", nil }, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	roster, err := ensemble.NewRoster(ensemble.Local("local", weather))
	if err != nil {
		panic(err)
	}
	defer roster.Close(ctx)
	model := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{{Name: "local__weather", Arguments: `{"name":"Oslo"}`}}},
		conversetest.Line{Text: "Take an umbrella."},
	)
	talk := converse.New(model, roster, &converse.Options{Telemetry: instruments})
	for _, err := range talk.Send(ctx, canister.Text("What should I wear in Oslo?")) {
		if err != nil {
			panic(err)
		}
	}
	for _, span := range spans.GetSpans() {
		if span.Name != "connect local" { // a trace of its own, which may end later
			fmt.Println(span.SpanKind, span.Name)
		}
	}
	// Unordered output:
	// client chat script
	// internal execute_tool local__weather
	// client chat script
	// internal invoke_agent
}

// Log lines of a tool contain their trace and conversation.
func ExampleFields() {
	log := zap.NewExample()
	find := func(ctx context.Context, c city) (string, error) {
		log.Info("looking for a city", telemetry.Fields(ctx)...)
		return "found " + c.Name, nil
	}
	// The conversation makes such a context for the tools that it calls.
	ctx := telemetry.WithConversation(context.Background(), "c-1")
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	_, _ = find(ctx, city{Name: "Oslo"})
	// Output: {"level":"info","msg":"looking for a city","trace_id":"01000000000000000000000000000000","span_id":"0200000000000000","conversation_id":"c-1"}
}

// The context of a call carries the span of the tool, so that spans of the
// tool's own, and of libraries that it uses, stand below it.
func ExampleStartTool() {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer tracers.Shutdown(context.Background())
	instruments, err := telemetry.New(&telemetry.Options{Tracers: tracers})
	if err != nil {
		panic(err)
	}
	ctx := telemetry.With(context.Background(), instruments)

	// A conversation does this around each call:
	ctx, call := telemetry.StartTool(ctx, telemetry.ToolCall{Name: "local__find", Call: "i-1"})
	func(ctx context.Context) { // the tool
		_, own := tracers.Tracer("example.com/find").Start(ctx, "SELECT cities")
		own.End()
	}(ctx)
	call.End(nil, &telemetry.Fault{Type: "UNAVAILABLE", Message: "The database is away.", Cause: errors.New("dial: refused")})

	all := spans.GetSpans()
	fmt.Println(all[0].Name, "is below", all[1].Name, all[0].Parent.SpanID() == all[1].SpanContext.SpanID())
	fmt.Println(all[1].Status.Code, all[1].Status.Description, all[1].Events[0].Name)
	// Output:
	// SELECT cities is below execute_tool local__find true
	// Error The database is away. exception
}

// A custom connection takes part in traces: each request is a span, and its context is
// sent in headers.
func ExampleInject() {
	tracers := sdktrace.NewTracerProvider()
	defer tracers.Shutdown(context.Background())
	instruments, err := telemetry.New(&telemetry.Options{Tracers: tracers})
	if err != nil {
		panic(err)
	}
	ctx := telemetry.With(context.Background(), instruments)
	ctx, request := telemetry.StartRequest(ctx, telemetry.Call{Method: "tools/call", Tool: "find", ID: "1"}, telemetry.Peer{Transport: "pipe"})
	defer func() { request.End(nil, nil) }()
	headers := propagation.MapCarrier{}
	telemetry.Inject(ctx, headers)

	// The server, which has a Telemetry of its own:
	served, work := instruments.StartServing(instruments.Extract(context.Background(), headers),
		telemetry.Call{Method: "tools/call", Tool: "find"}, telemetry.Peer{})
	defer func() { work.End(nil, nil) }()
	fmt.Println(trace.SpanContextFromContext(served).TraceID() == trace.SpanContextFromContext(ctx).TraceID())
	// Output: true
}
