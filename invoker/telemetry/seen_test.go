// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// seen is a Telemetry with its recorded output.
type seen struct {
	*telemetry.Telemetry
	t      *testing.T
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

// see returns a Telemetry whose spans and measurements can be looked at.
func see(t *testing.T, options telemetry.Options) *seen {
	t.Helper()
	s := &seen{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	t.Cleanup(func() {
		_ = tracers.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	options.Tracers, options.Meters = tracers, meters
	var err error
	if s.Telemetry, err = telemetry.New(&options); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *seen) context() context.Context { return telemetry.With(s.t.Context(), s.Telemetry) }

// one returns the only span of a name.
func (s *seen) one(name string) tracetest.SpanStub {
	s.t.Helper()
	var found []tracetest.SpanStub
	for _, span := range s.spans.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d spans are called %q", len(found), name)
	}
	return found[0]
}

// metrics returns the measurements by name.
func (s *seen) metrics() map[string]metricdata.Metrics {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// valueOf returns an attribute of a span; its type is EMPTY if it is not set.
func valueOf(span tracetest.SpanStub, key string) attribute.Value {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// work does each operation once with all that there is to tell of it, and ends
// it with the fault.
func work(s *seen, fault *telemetry.Fault) {
	ctx := telemetry.WithConversation(s.context(), "c-1")
	half, seed := 0.5, int64(7)
	model := telemetry.ModelInfo{Provider: "openai", Name: "m", Address: "models.example", Port: 443, JSON: true,
		MaxTokens: 100, Temperature: &half, TopP: &half, Stop: []string{"."}, Seed: &seed}
	usage := canister.Usage{Input: 10, Cached: 5, CacheWritten: 3, Output: 7, Reasoning: 2}
	definition := &invoker.Definition{Name: "atlas__find", Description: "Finds."}
	arguments := json.RawMessage(`{"q":"x"}`)
	result := canister.Texts("found")

	ctx, agent := telemetry.StartAgent(ctx, "guide", model)
	chatting, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Model: model, Tools: []*invoker.Definition{definition},
		History: []canister.Canister{canister.Supervisor{Content: canister.Texts("Be brief.")}, canister.User{Content: canister.Texts("Where?")}}})
	_ = chatting
	chat.Streamed()
	chat.End(telemetry.ChatResult{Fault: fault, Message: canister.Assistant{Model: "m-2", Content: result, Finish: canister.FinishInvocations, Usage: &usage}})

	calling, tool := telemetry.StartTool(ctx,
		telemetry.ToolCall{Name: "atlas__find", Ensemble: "atlas", Description: "Finds.", Call: "i-1", Arguments: arguments})
	peer := telemetry.Peer{Ensemble: "atlas", Protocol: "2025-11-25", Session: "s-1", Transport: "tcp", Network: "http", Address: "tools.example", Port: 8080}
	call := telemetry.Call{Method: "tools/call", Tool: "find", ID: "3", Arguments: arguments}
	asking, request := telemetry.StartRequest(calling, call, peer)
	_, served := s.StartServing(asking, call, peer)
	for _, r := range []*telemetry.Request{served, request} {
		if fault != nil {
			r.Refused("-32603")
		}
		r.End(result, fault)
	}
	for _, other := range []telemetry.Call{{Method: "prompts/get", Prompt: "greet", ID: "4"}, {Method: "resources/read", URI: "file:///a", ID: "5"}} {
		_, request := telemetry.StartRequest(calling, other, peer)
		request.End(nil, fault)
		_, served := s.StartServing(calling, other, peer)
		served.End(nil, fault)
	}
	tool.End(result, fault)
	agent.End(telemetry.AgentResult{Reason: "done", Usage: usage, Exchanges: 1, Invocations: 1, Finish: "stop", Fault: fault})

	for _, client := range []bool{true, false} {
		s.StartSession(peer, client).End(fault)
	}
	_, connect := telemetry.StartConnect(ctx, "atlas")
	connect.End(1, 0, fault)
}

// bare runs each operation without details.
func bare(s *seen) {
	ctx := s.context()
	ctx, agent := telemetry.StartAgent(ctx, "", telemetry.ModelInfo{})
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Model: telemetry.ModelInfo{Whole: true}})
	chat.End(telemetry.ChatResult{})
	ctx, tool := telemetry.StartTool(ctx, telemetry.ToolCall{Name: "add"})
	_, request := telemetry.StartRequest(ctx, telemetry.Call{Method: "tools/list"}, telemetry.Peer{})
	request.End(nil, nil)
	_, served := s.StartServing(ctx, telemetry.Call{Method: "tools/list"}, telemetry.Peer{})
	served.End(nil, nil)
	tool.End(nil, nil)
	agent.End(telemetry.AgentResult{})
	for _, client := range []bool{true, false} {
		s.StartSession(telemetry.Peer{}, client).End(nil)
	}
}
