// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Tool is an invocation of a tool, called execute_tool in the conventions.
type Tool struct{ operation }

// ToolCall describes the call of a tool.
type ToolCall struct {
	Name        string // the model's name for the tool
	Ensemble    string // may be empty
	Description string
	Call        string          // the ID of the invocation
	Arguments   json.RawMessage // only recorded with Options.Content
	// Unknown means that the tool does not exist. Since models can make up any name,
	// the span and the measurements use the name _OTHER, and only the span's
	// attribute has the real name.
	Unknown bool
}

// otherTool is the name of tools that do not exist.
const otherTool = "_OTHER"

// StartTool starts an invocation. It returns a nil *Tool, whose methods do
// nothing, if ctx carries no Telemetry.
func StartTool(ctx context.Context, call ToolCall) (context.Context, *Tool) {
	t := busy(ctx)
	if t == nil {
		return ctx, nil
	}
	name := call.Name
	if call.Unknown {
		name = otherTool
	}
	measured := make([]attribute.KeyValue, 0, 6)
	measured = append(measured, keyToolName.String(name), keyToolType.String("function"))
	if call.Ensemble != "" {
		measured = append(measured, keyEnsemble.String(call.Ensemble))
	}
	if agent := agentOf(ctx); agent != "" {
		measured = append(measured, keyAgentName.String(agent))
	}
	more := append(conversationOf(ctx), keyOperation.String("execute_tool"), keyToolCall.String(call.Call))
	o := &Tool{t.start(ctx, "execute_tool "+bounded(name, maxName), trace.SpanKindInternal, measured, more...)}
	if o.recording && call.Description != "" {
		o.set(keyToolText.String(o.text(call.Description)))
	}
	if call.Unknown {
		o.set(keyToolName.String(bounded(o.text(call.Name), maxName)))
	}
	o.recordArguments(call.Arguments)
	return o.ctx, o
}

// Within returns ctx as a context within the invocation: spans that begin in it are children of
// the invocation's span. The rest of ctx, such as its end, stays.
func (o *Tool) Within(ctx context.Context) context.Context {
	if o == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, o.span)
}

// End ends the invocation with the tool's result or its fault. Only the first
// call counts.
func (o *Tool) End(content []canister.Content, fault *Fault) {
	if o == nil || o.ended {
		return
	}
	if fault == nil {
		o.recordResult(content)
	}
	o.end(o.telemetry.instruments.tool, fault)
}
