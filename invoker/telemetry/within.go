// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Within returns ctx as a context that belongs to the same operation as work. It
// is for requests made during work through another context, such as the one of a
// connection. The result has the Telemetry and the conversation of work, and its
// span, unless ctx has a span of the same trace, which is closer.
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
