// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"slices"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// broken is a processor of spans, and a propagator, that panic.
type broken struct{ start bool }

func (b broken) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	if b.start {
		panic("start")
	}
}
func (broken) OnEnd(sdktrace.ReadOnlySpan)      { panic("end") }
func (broken) Shutdown(context.Context) error   { return nil }
func (broken) ForceFlush(context.Context) error { return nil }

func (broken) Inject(context.Context, propagation.TextMapCarrier) { panic("inject") }
func (broken) Extract(context.Context, propagation.TextMapCarrier) context.Context {
	panic("extract")
}
func (broken) Fields() []string { return nil }

// What panics in the program's providers harms no work.
func TestProvidersThatPanic(t *testing.T) {
	for _, b := range []broken{{start: true}, {}} {
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b))
		told := 0
		instruments, err := telemetry.New(&telemetry.Options{Tracers: tracers, Propagator: b, Panicked: func(error) { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		ctx := instruments.Extract(t.Context(), propagation.MapCarrier{})
		ctx, request := instruments.StartServing(ctx, telemetry.Call{Method: "tools/call"}, telemetry.Peer{})
		ctx, tool := telemetry.StartTool(ctx, telemetry.ToolCall{Name: "add"})
		telemetry.Inject(ctx, propagation.MapCarrier{})
		tool.End(nil, &telemetry.Fault{Message: "No."})
		request.End(nil, nil)
		if telemetry.From(ctx) != instruments || ctx.Err() != nil {
			t.Error("the context is lost")
		}
		if told != 4 { // two spans, and what goes in and out
			t.Errorf("%d panics were told", told)
		}
	}
}

// brokenTracers and brokenMeters make spans and instruments that panic.
type brokenTracers struct{ tracenoop.TracerProvider }

func (brokenTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return brokenTracer{} }

type brokenTracer struct{ tracenoop.Tracer }

func (brokenTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, brokenSpan{}
}

type brokenSpan struct{ tracenoop.Span }

func (brokenSpan) IsRecording() bool                     { return true }
func (brokenSpan) SetAttributes(...attribute.KeyValue)   { panic("attributes") }
func (brokenSpan) SetStatus(codes.Code, string)          { panic("status") }
func (brokenSpan) AddEvent(string, ...trace.EventOption) { panic("event") }
func (brokenSpan) SetName(string)                        { panic("name") }
func (brokenSpan) End(...trace.SpanEndOption)            { panic("end") }

type brokenMeters struct{ metricnoop.MeterProvider }

func (brokenMeters) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ metricnoop.Meter }

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return brokenHistogram{}, nil
}

type brokenHistogram struct{ metricnoop.Float64Histogram }

func (brokenHistogram) Enabled(context.Context) bool                            { return true }
func (brokenHistogram) Record(context.Context, float64, ...metric.RecordOption) { panic("record") }

// Every method of a span and of an instrument, Redact and Panicked itself may
// panic, and the work goes on.
func TestSpansInstrumentsAndRedactThatPanic(t *testing.T) {
	var told []string
	instruments, err := telemetry.New(&telemetry.Options{
		Tracers: brokenTracers{}, Meters: brokenMeters{}, Content: true,
		Redact:   func(string) string { panic("redact") },
		Panicked: func(err error) { told = append(told, err.Error()); panic("panicked") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := instruments.StartServing(t.Context(), telemetry.Call{Method: "tools/call", Arguments: []byte(`{"a":"b"}`)}, telemetry.Peer{})
	request.Tool("add")
	request.Prompt("ask")
	_, connect := telemetry.StartConnect(ctx, "e")
	connect.End(1, 0, nil)
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{})
	chat.Retried(1, 0, telemetry.Fault{})
	chat.Streamed()
	chat.End(telemetry.ChatResult{})
	session := instruments.StartSession(telemetry.Peer{}, true)
	session.End(nil)
	request.End(nil, &telemetry.Fault{Message: "No.", Cause: (*nilError)(nil)})
	for _, want := range []string{"a span panicked: attributes", "a span panicked: status", "a span panicked: event", "a span panicked: name",
		"the end of a span panicked: end", "an instrument panicked: record", "the function Redact panicked: redact"} {
		if !slices.Contains(told, "telemetry: "+want) {
			t.Errorf("not told: %s; but %q", want, slices.Compact(slices.Sorted(slices.Values(told))))
		}
	}
}
