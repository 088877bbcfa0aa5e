// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// operation is a span and the measurement of its duration.
type operation struct {
	telemetry *Telemetry
	ctx       context.Context // of the span
	span      trace.Span
	began     time.Time
	measured  []attribute.KeyValue // the attributes that the measurements have, too
}

// start begins a span. What is measured are attributes of the span as well.
func (t *Telemetry) start(ctx context.Context, name string, kind trace.SpanKind, measured []attribute.KeyValue, more ...attribute.KeyValue) operation {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(began),
		trace.WithAttributes(measured...), trace.WithAttributes(more...))
	return operation{telemetry: t, ctx: ctx, span: span, began: began, measured: measured}
}

// end ends the span and measures it.
func (o *operation) end(duration metric.Float64Histogram, fault *Fault) {
	ended := time.Now()
	if fault != nil {
		kind := keyErrorType.String(fault.Type)
		o.measured = append(o.measured, kind)
		o.span.SetAttributes(kind)
		o.span.SetStatus(codes.Error, o.text(fault.Message))
	}
	o.span.End(trace.WithTimestamp(ended))
	duration.Record(o.ctx, ended.Sub(o.began).Seconds(), metric.WithAttributes(o.measured...))
}

// text is what may be recorded of a text.
func (o *operation) text(text string) string {
	if clean := redact.Trusted(o.ctx, o.telemetry.options.Redact); clean != nil {
		text = clean(text)
	}
	return cut(text, maxMessage)
}

// maxMessage bounds the description of a status, in bytes.
const maxMessage = 1024

// cut shortens a text to at most so many bytes, between two characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}

// Fault says that an operation failed: the error.type of the conventions, a
// name of which there are few, and words for people. Nil is no fault.
type Fault struct{ Type, Message string }

// FaultOf is the fault of a failed call: the code of the failure, and what the
// model is told. It is nil for nil.
func FaultOf(failure *invoker.Failure) *Fault {
	if failure == nil {
		return nil
	}
	message := failure.Message
	if message == "" {
		message = canister.TextOf(failure.Content)
	}
	return &Fault{Type: string(failure.Code), Message: message}
}
