// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// ModelInfo describes the model; unknown fields are empty.
type ModelInfo struct {
	Provider string // name in the conventions, such as "openai"
	Name     string // name in the request
	Address  string // host of the server
	Port     int
	Whole    bool // answers are not streamed
	JSON     bool // answers are requested as JSON

	// The settings of the model. A request's own settings take precedence.
	MaxTokens         int64
	Temperature, TopP *float64
	Stop              []string
	Seed              *int64
}

// attributes returns the attributes that every measurement of a chat has.
func (m ModelInfo) attributes() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 8)
	list = append(list, keyOperation.String("chat"), m.provider())
	if m.Name != "" {
		list = append(list, keyRequestModel.String(m.Name))
	}
	if m.Address != "" {
		list = append(list, keyServerAddress.String(m.Address))
		if m.Port != 0 {
			list = append(list, keyServerPort.Int(m.Port))
		}
	}
	return list
}

// provider returns the provider attribute, which is required for a chat.
func (m ModelInfo) provider() attribute.KeyValue {
	return keyProvider.String(cmp.Or(m.Provider, otherProvider))
}

// otherProvider is the provider name if none is given.
const otherProvider = "unknown"

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

// Chat is an exchange with a model.
type Chat struct {
	operation
	first time.Time
}

// ChatRequest is the input of a model.
type ChatRequest struct {
	Model       ModelInfo
	MaxTokens   int64    // 0 if not set
	Temperature *float64 // nil if not set
	Stop        []string
	// History and Tools are only recorded with Options.Content.
	History []canister.Canister
	Tools   []*invoker.Definition
}

// ChatResult is the answer of a model, or its failure.
type ChatResult struct {
	Message     canister.Assistant
	Invocations []canister.Invocation
	// Fault is the failure, if there was one; Message is then the part of the answer
	// that was received and paid for, if any.
	Fault *Fault
}

// StartChat starts an exchange. It returns a nil *Chat, whose methods do nothing,
// if ctx carries no Telemetry.
func StartChat(ctx context.Context, request ChatRequest) (context.Context, *Chat) {
	t := busy(ctx)
	if t == nil {
		return ctx, nil
	}
	name := "chat"
	if request.Model.Name != "" {
		name += " " + request.Model.Name
	}
	more := append(conversationOf(ctx), request.settings()...)
	if !request.Model.Whole {
		more = append(more, keyStream.Bool(true))
	}
	c := &Chat{operation: t.start(ctx, name, trace.SpanKindClient, request.Model.attributes(), more...)}
	c.recordRequest(request)
	return c.ctx, c
}

// settings returns the attributes for the parameters of the request.
func (r *ChatRequest) settings() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 8)
	m := &r.Model
	if m.JSON {
		list = append(list, keyOutputType.String("json"))
	}
	if most := cmp.Or(r.MaxTokens, m.MaxTokens); most > 0 {
		if m.MaxTokens > 0 {
			most = min(most, m.MaxTokens)
		}
		list = append(list, keyMaxTokens.Int64(most))
	}
	if temperature := cmp.Or(r.Temperature, m.Temperature); temperature != nil {
		list = append(list, keyTemperature.Float64(*temperature))
	}
	if m.TopP != nil {
		list = append(list, keyTopP.Float64(*m.TopP))
	}
	if m.Seed != nil {
		list = append(list, keySeed.Int64(*m.Seed))
	}
	stop := r.Stop
	if len(stop) == 0 {
		stop = m.Stop
	}
	if len(stop) > 0 {
		list = append(list, keyStop.StringSlice(stop))
	}
	return list
}

// Retried records that an attempt, counted from 1, failed, and that another one
// follows after wait.
func (c *Chat) Retried(attempt int, wait time.Duration, fault Fault) {
	if c == nil || !c.recording {
		return
	}
	c.onSpan(func(span trace.Span) {
		span.AddEvent(retried, trace.WithAttributes(keyAttempt.Int(attempt), keyWait.Float64(wait.Seconds()),
			keyErrorType.String(bounded(fault.kind(), maxName)), keyErrorText.String(c.text(fault.Message))))
	})
}

// Streamed records that a piece of the answer has arrived; only the first call
// counts. It must not be called concurrently with itself or End.
func (c *Chat) Streamed() {
	if c != nil && c.first.IsZero() {
		c.first = time.Now()
	}
}

// End ends the exchange. Only the first call counts.
func (c *Chat) End(result ChatResult) {
	if c == nil || c.ended {
		return
	}
	if model := result.Message.Model; model != "" {
		c.measure(keyResponseModel.String(c.text(model)))
	}
	if finish := result.Message.Finish; finish != "" {
		c.set(finishReason(canister.Finish(c.text(string(finish)))))
	}
	made := &c.telemetry.instruments
	if u := result.Message.Usage; u != nil {
		c.set(usage(*u)...)
		if u.Reasoning > 0 {
			c.set(keyReasoning.Int64(u.Reasoning))
		}
		c.count(made.tokens, u.Input, "input")
		c.count(made.tokens, u.Output, "output")
	}
	if !c.first.IsZero() {
		wait := c.first.Sub(c.began).Seconds()
		c.set(keyFirstChunk.Float64(wait))
		c.telemetry.measureSeconds(c.ctx, made.firstChunk, wait, c.alike)
	}
	if result.Fault == nil {
		c.recordAnswer(result)
	}
	c.end(made.chat, result.Fault)
}

// count measures tokens of a type. It ignores negative numbers, which a server
// may report, because they would be subtracted from the sum of others.
func (c *Chat) count(tokens metric.Int64Histogram, n int64, kind string) {
	if n < 0 {
		return
	}
	c.telemetry.guard("an instrument", func() {
		if tokens.Enabled(c.ctx) {
			tokens.Record(c.ctx, n, metric.WithAttributes(append(slices.Clip(c.measured), keyTokenType.String(kind))...))
		}
	})
}

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

// conversationOf returns the attribute for the conversation that ctx belongs to.
func conversationOf(ctx context.Context) []attribute.KeyValue {
	if id := Conversation(ctx); id != "" {
		return []attribute.KeyValue{keyConversation.String(id)}
	}
	return nil
}

// usage returns the attributes for the tokens used. Cached tokens are left out if
// their number is 0.
func usage(u canister.Usage) []attribute.KeyValue {
	list := []attribute.KeyValue{keyInput.Int64(u.Input), keyOutput.Int64(u.Output)}
	if u.Cached > 0 {
		list = append(list, keyCached.Int64(u.Cached))
	}
	return list
}

// finishReason returns the attribute for the reason to stop, with the name in the
// conventions if they have one.
func finishReason(finish canister.Finish) attribute.KeyValue {
	return keyFinish.StringSlice([]string{finishName(finish)})
}

func finishName(finish canister.Finish) string {
	if finish == canister.FinishInvocations {
		return "tool_call"
	}
	return bounded(string(finish), maxName)
}
