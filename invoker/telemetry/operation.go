// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/contain"
)

// operation is a span and the measurement of its duration. Its methods are for
// one goroutine at a time.
type operation struct {
	telemetry *Telemetry
	ctx       context.Context // context with the span
	span      trace.Span
	recording bool // whether the span is recording
	began     time.Time
	ended     bool
	late      []attribute.KeyValue // attributes to set when the span ends
	measured  []attribute.KeyValue // attributes that the measurements have too
	option    metric.MeasurementOption
}

// start starts a span. The attributes in measured are also set on the span.
func (t *Telemetry) start(ctx context.Context, name string, kind trace.SpanKind, measured []attribute.KeyValue, more ...attribute.KeyValue) operation {
	bound(more, maxMessage)
	return t.begin(ctx, name, measured, trace.WithSpanKind(kind), trace.WithAttributes(more...))
}

func (t *Telemetry) begin(ctx context.Context, name string, measured []attribute.KeyValue, options ...trace.SpanStartOption) operation {
	began := time.Now()
	bound(measured, maxName)
	options = append(options, trace.WithTimestamp(began), trace.WithAttributes(measured...))
	span := trace.SpanFromContext(context.Background()) // a no-op span
	t.guard("the start of a span", func() { ctx, span = t.tracer.Start(ctx, bounded(name, maxName), options...) })
	o := operation{telemetry: t, ctx: ctx, span: span, began: began, measured: measured}
	o.onSpan(func(span trace.Span) { o.recording = span.IsRecording() })
	return o
}

// set adds attributes to the span.
func (o *operation) set(attributes ...attribute.KeyValue) {
	if o.recording {
		o.late = append(o.late, attributes...)
	}
}

// measure adds attributes to the span and to the measurements.
func (o *operation) measure(attributes ...attribute.KeyValue) {
	o.set(attributes...)
	o.measured, o.option = append(o.measured, attributes...), nil
	bound(o.measured[len(o.measured)-len(attributes):], maxName)
}

// code adds a code that the other side may have made up: to the span as it is,
// and to the measurements as returned by usual, since each value creates another
// time series.
func (o *operation) code(key attribute.Key, code string) {
	code = bounded(code, maxName)
	o.set(key.String(code))
	o.measured, o.option = append(o.measured, key.String(usual(code))), nil
}

// alike returns the attributes of a measurement.
func (o *operation) alike() metric.MeasurementOption {
	if o.option == nil {
		o.option = metric.WithAttributes(o.measured...)
	}
	return o.option
}

// end ends the span and measures its duration.
func (o *operation) end(duration metric.Float64Histogram, fault *Fault) {
	o.ended = true
	ended := time.Now()
	if fault != nil {
		o.fail(fault)
	}
	if len(o.late) > 0 {
		bound(o.late, maxMessage)
		o.onSpan(func(span trace.Span) { span.SetAttributes(o.late...) })
	}
	o.telemetry.guard("the end of a span", func() { o.span.End(trace.WithTimestamp(ended)) })
	o.telemetry.measureSeconds(o.ctx, duration, ended.Sub(o.began).Seconds(), o.alike)
}

// fail marks the operation as failed.
func (o *operation) fail(fault *Fault) {
	o.code(keyErrorType, fault.kind())
	if !o.recording {
		return
	}
	message := fault.Message
	if len(fault.Said) > 0 && o.telemetry.options.Content {
		message = cmp.Or(canister.TextOf(fault.Said), message)
	}
	o.onSpan(func(span trace.Span) {
		span.SetStatus(codes.Error, o.text(message))
		if fault.Cause != nil {
			span.AddEvent(exceptionEvent, trace.WithAttributes(
				keyExceptionType.String(bounded(causeType(fault.Cause), maxName)), keyExceptionText.String(o.text(contain.Text(fault.Cause)))))
		}
	})
}
