// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// The names of the fields that connect log lines, spans and audit records.
const (
	TraceField        = "trace_id"
	SpanField         = "span_id"
	ConversationField = "conversation_id"
)

type conversationKey struct{}

// WithConversation returns a context whose work belongs to a conversation.
// Conversations call it themselves; a program calls it for its own work.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// Conversation returns the ID of the conversation that ctx belongs to, or "".
func Conversation(ctx context.Context) string {
	id, _ := ctx.Value(conversationKey{}).(string)
	return id
}

type ensembleKey struct{}

// WithEnsemble returns a context for opening a connection of an ensemble; package
// ensemble calls it. The connection uses this name in its telemetry.
func WithEnsemble(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, ensembleKey{}, name)
}

// Ensemble returns the name of the ensemble that a connection is opened for, or
// "".
func Ensemble(ctx context.Context) string {
	name, _ := ctx.Value(ensembleKey{}).(string)
	return name
}

// Fields returns the log fields for the work that ctx belongs to: the IDs of its
// trace and span, in hexadecimal as in W3C Trace Context, and of its
// conversation, each if present. Tools add them to their own log lines.
func Fields(ctx context.Context) []zap.Field {
	var fields []zap.Field
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		fields = append(fields, zap.Stringer(TraceField, span.TraceID()), zap.Stringer(SpanField, span.SpanID()))
	}
	if id := Conversation(ctx); id != "" {
		fields = append(fields, zap.String(ConversationField, id))
	}
	return fields
}
