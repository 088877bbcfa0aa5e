// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
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
