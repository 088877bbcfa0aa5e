// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// operation is a span and the measurement of its duration. Its methods are for
// one goroutine at a time.
type operation struct {
	telemetry *Telemetry
	ctx       context.Context // of the span
	span      trace.Span
	began     time.Time
	ended     bool
	measured  []attribute.KeyValue // the attributes that the measurements have, too
}

// start begins a span. What is measured are attributes of the span as well.
func (t *Telemetry) start(ctx context.Context, name string, kind trace.SpanKind, measured []attribute.KeyValue, more ...attribute.KeyValue) operation {
	began := time.Now()
	bound(measured, maxName)
	bound(more, maxMessage)
	ctx, span := t.tracer.Start(ctx, bounded(name, maxName), trace.WithSpanKind(kind), trace.WithTimestamp(began),
		trace.WithAttributes(measured...), trace.WithAttributes(more...))
	return operation{telemetry: t, ctx: ctx, span: span, began: began, measured: measured}
}

// set adds attributes to the span.
func (o *operation) set(attributes ...attribute.KeyValue) {
	if o.span.IsRecording() {
		bound(attributes, maxMessage)
		o.span.SetAttributes(attributes...)
	}
}

// measure adds attributes to the span and to the measurements.
func (o *operation) measure(attributes ...attribute.KeyValue) {
	bound(attributes, maxName)
	o.measured = append(o.measured, attributes...)
	o.set(attributes...)
}

// end ends the span and measures it.
func (o *operation) end(duration metric.Float64Histogram, fault *Fault) {
	o.ended = true
	ended := time.Now()
	if fault != nil {
		o.fail(fault)
	}
	o.span.End(trace.WithTimestamp(ended))
	if duration.Enabled(o.ctx) {
		duration.Record(o.ctx, ended.Sub(o.began).Seconds(), metric.WithAttributes(o.measured...))
	}
}

// fail marks the operation as failed.
func (o *operation) fail(fault *Fault) {
	o.measure(keyErrorType.String(fault.kind()))
	if !o.span.IsRecording() {
		return
	}
	message := fault.Message
	if len(fault.Said) > 0 && o.telemetry.options.Content {
		message = fault.words()
	}
	o.span.SetStatus(codes.Error, o.text(message))
	if fault.Cause != nil {
		o.span.AddEvent(exceptionEvent, trace.WithAttributes(
			keyExceptionType.String(bounded(causeType(fault.Cause), maxName)), keyExceptionText.String(o.text(causeText(fault.Cause)))))
	}
}
