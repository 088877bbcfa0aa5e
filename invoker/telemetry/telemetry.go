// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"errors"

	"github.com/consort-go/consort/internal/redact"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Scope is the name of the instrumentation scope of all spans and instruments.
const Scope = "github.com/consort-go/consort"

// defaultContentBytes is the default of [Options.ContentBytes].
const defaultContentBytes = 4096

// leastContent is the minimum of Options.ContentBytes.
const leastContent = 256

// Options are the options of a [Telemetry].
type Options struct {
	// Tracers makes the spans; nil makes none.
	Tracers trace.TracerProvider
	// Meters makes the instruments; nil measures nothing.
	Meters metric.MeterProvider
	// Propagator writes the trace context into requests and reads it from them;
	// default W3C Trace Context.
	Propagator propagation.TextMapPropagator
	// Content records the arguments and results of tools and the messages of
	// exchanges as attributes. They can contain anything that people write: consider
	// who can read the traces.
	Content bool
	// ContentBytes is the maximum size of each attribute that Content adds, in bytes;
	// default 4096, at least 256. Larger ones are shortened and stay valid JSON: the
	// ends of long texts and the oldest messages are left out.
	ContentBytes int
	// Redact removes secrets from a text. It is applied to errors and, with Content,
	// to the recorded content. Secret trusted values of the context are always
	// removed. It is called concurrently. Nil leaves texts unchanged.
	Redact func(text string) string
	// Panicked is called after a panic in the Tracers (such as in one of the
	// program's span processors), in the Meters, in the Propagator or in Redact. Such
	// a panic only costs a span, a measurement or a text. It is called concurrently;
	// [otel.Handle] is suitable. If it is nil, panics are not reported.
	//
	// [otel.Handle]: https://pkg.go.dev/go.opentelemetry.io/otel#Handle
	Panicked func(err error)
}

// Telemetry makes spans and measurements. All methods may be called concurrently,
// and on a nil *Telemetry, which does nothing.
type Telemetry struct {
	options     Options
	tracer      trace.Tracer
	meter       metric.Meter
	instruments instruments
	gauges      gauges
	idle        bool // there is no provider: it only propagates the trace context
}

// New returns a Telemetry. options may be nil. It returns an error if a provider
// refuses an instrument.
func New(options *Options) (*Telemetry, error) {
	t := &Telemetry{}
	if options != nil {
		t.options = *options
	}
	o := &t.options
	o.Redact = redact.Contained(o.Redact, t.reportPanic)
	t.idle = o.Tracers == nil && o.Meters == nil
	o.ContentBytes = max(cmp.Or(max(o.ContentBytes, 0), defaultContentBytes), leastContent)
	if o.Tracers == nil {
		o.Tracers = tracenoop.NewTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = metricnoop.NewMeterProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	t.tracer = o.Tracers.Tracer(Scope, trace.WithSchemaURL(SchemaURL))
	t.meter = o.Meters.Meter(Scope, metric.WithSchemaURL(SchemaURL))
	var problem error
	var err error
	t.instruments, err = newInstruments(t.meter)
	t.gauges, problem = newGauges(t.meter)
	if err := errors.Join(err, problem); err != nil {
		return nil, err
	}
	return t, nil
}

type contextKey struct{}

// With returns a context that carries t. If t is nil, it returns ctx itself, with
// the Telemetry that it carries already.
func With(ctx context.Context, t *Telemetry) context.Context {
	if t == nil || From(ctx) == t {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, t)
}

// From returns the Telemetry that ctx carries, or nil.
func From(ctx context.Context) *Telemetry {
	t, _ := ctx.Value(contextKey{}).(*Telemetry)
	return t
}

// busy returns the Telemetry of ctx, or nil if it records nothing.
func busy(ctx context.Context) *Telemetry {
	if t := From(ctx); t != nil && !t.idle {
		return t
	}
	return nil
}

// Inject writes the trace context into the headers of a request. It writes
// nothing if ctx carries no Telemetry or no span.
func Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if t := From(ctx); t != nil {
		t.guard("the propagator", func() { t.options.Propagator.Inject(ctx, carrier) })
	}
}

// Extract returns ctx with the span from the headers of a request as the parent
// of new spans. Invalid headers change nothing. If ctx already has a span, such
// as that of the surrounding HTTP server, the span of StartServing links to it
// (conventions of MCP, § Context propagation).
func (t *Telemetry) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	if t == nil {
		return ctx
	}
	around := trace.SpanContextFromContext(ctx)
	t.guard("the propagator", func() { ctx = t.options.Propagator.Extract(ctx, carrier) })
	if parent := trace.SpanContextFromContext(ctx); parent.TraceID() == around.TraceID() && parent.SpanID() == around.SpanID() {
		around = trace.SpanContext{} // the same span as the parent
	}
	if _, ok := ctx.Value(aroundKey{}).(trace.SpanContext); ok || around.IsValid() {
		ctx = context.WithValue(ctx, aroundKey{}, around)
	}
	return ctx
}

type aroundKey struct{}

// TraceID returns the ID of the trace that ctx belongs to, in 32 hexadecimal
// digits as in W3C Trace Context, or "".
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}
