// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Within returns ctx as one that works for the same as work does: for what is
// asked for while work is done, by way of a context from elsewhere, such as that
// of a connection. It has the Telemetry and the conversation of work, and its
// span, unless ctx has one of the same trace, which is nearer.
func Within(ctx, work context.Context) context.Context {
	span := trace.SpanFromContext(work)
	if trace.SpanContextFromContext(ctx).TraceID() != span.SpanContext().TraceID() {
		ctx = trace.ContextWithSpan(ctx, span)
	}
	if id := Conversation(work); id != Conversation(ctx) {
		ctx = WithConversation(ctx, id)
	}
	return With(ctx, From(work))
}
