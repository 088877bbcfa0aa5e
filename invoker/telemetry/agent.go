// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"github.com/consort-go/consort/canister"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Agent is a turn of a conversation, called invoke_agent in the conventions.
type Agent struct{ operation }

// AgentResult is the outcome of a turn.
type AgentResult struct {
	Reason      string // why the turn ended
	Usage       canister.Usage
	Exchanges   int
	Invocations int
	Finish      string // of the last exchange
	Fault       *Fault
}

// StartAgent starts a turn of the conversation that ctx carries
// ([WithConversation]). name is the name of the agent and may be empty.
// StartAgent returns a nil *Agent, whose methods do nothing, if ctx carries no
// Telemetry.
func StartAgent(ctx context.Context, name string, model ModelInfo) (context.Context, *Agent) {
	t := busy(ctx)
	if t == nil {
		return ctx, nil
	}
	title, measured := "invoke_agent", make([]attribute.KeyValue, 0, 4)
	if name != "" {
		title += " " + name
		measured = append(measured, keyAgentName.String(name))
	}
	if name != agentOf(ctx) {
		ctx = context.WithValue(ctx, agentKey{}, name)
	}
	if model.Name != "" {
		measured = append(measured, keyRequestModel.String(model.Name))
	}
	asked := ChatRequest{Model: model}
	more := append(append(conversationOf(ctx), keyOperation.String("invoke_agent"), model.provider()), asked.settings()...)
	a := &Agent{t.start(ctx, title, trace.SpanKindInternal, measured, more...)}
	return a.ctx, a
}

type agentKey struct{}

// agentOf returns the name of the agent that ctx belongs to, or "".
func agentOf(ctx context.Context) string {
	name, _ := ctx.Value(agentKey{}).(string)
	return name
}

// End ends the turn. Only the first call counts.
func (a *Agent) End(result AgentResult) {
	if a == nil || a.ended {
		return
	}
	if result.Reason != "" {
		a.measure(keyReason.String(result.Reason))
	}
	a.set(keyExchanges.Int(result.Exchanges), keyCalls.Int(result.Invocations))
	a.set(usage(result.Usage)...)
	if result.Finish != "" {
		a.set(finishReason(canister.Finish(a.text(result.Finish))))
	}
	a.end(a.telemetry.instruments.agent, result.Fault)
}

// conversationOf returns the attribute for the conversation that ctx belongs to.
func conversationOf(ctx context.Context) []attribute.KeyValue {
	if id := Conversation(ctx); id != "" {
		return []attribute.KeyValue{keyConversation.String(id)}
	}
	return nil
}
