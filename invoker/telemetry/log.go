// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// The names of the fields by which lines of a log, spans and records of an
// audit are brought together.
const (
	TraceField        = "trace_id"
	SpanField         = "span_id"
	ConversationField = "conversation_id"
)

type conversationKey struct{}

// WithConversation returns a context whose work belongs to a conversation. The
// conversation itself calls it, and a program does for work of its own.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// Conversation returns the identity of the conversation that ctx works for, or
// "".
func Conversation(ctx context.Context) string {
	id, _ := ctx.Value(conversationKey{}).(string)
	return id
}

type ensembleKey struct{}

// WithEnsemble returns a context in which a connection of an ensemble is opened;
// package ensemble calls it. The connection tells of itself by that name.
func WithEnsemble(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, ensembleKey{}, name)
}

// Ensemble returns the name of the ensemble that a connection is opened for, or
// "".
func Ensemble(ctx context.Context) string {
	name, _ := ctx.Value(ensembleKey{}).(string)
	return name
}

// Fields returns what a line of a log says of the work that ctx belongs to: the
// ids of its trace and span, in hexadecimal as in W3C Trace Context, and that
// of its conversation, each if there is one. Tools add them to lines of their
// own.
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
