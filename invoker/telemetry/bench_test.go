// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker/telemetry"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// nowhere is an exporter that forgets.
type nowhere struct{ *tracetest.NoopExporter }

// BenchmarkOperations is the cost of each operation, without a provider, with
// one that does nothing, with spans that are not sampled, and with spans and
// measurements that are made, batched and forgotten.
func BenchmarkOperations(b *testing.B) {
	real := func(sampler sdktrace.Sampler) telemetry.Options {
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(nowhere{tracetest.NewNoopExporter()}))
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		b.Cleanup(func() {
			_ = tracers.Shutdown(context.Background())
			_ = meters.Shutdown(context.Background())
		})
		return telemetry.Options{Tracers: tracers, Meters: meters}
	}
	content := real(sdktrace.AlwaysSample())
	content.Content = true
	for _, provider := range []struct {
		name    string
		options *telemetry.Options
	}{
		{"nil", nil},
		{"noop", &telemetry.Options{Tracers: tracenoop.NewTracerProvider(), Meters: metricnoop.NewMeterProvider()}},
		{"unsampled", ptr(real(sdktrace.NeverSample()))},
		{"real", ptr(real(sdktrace.AlwaysSample()))},
		{"content", &content},
	} {
		var made *telemetry.Telemetry
		if provider.options != nil {
			var err error
			if made, err = telemetry.New(provider.options); err != nil {
				b.Fatal(err)
			}
		}
		ctx := telemetry.WithConversation(telemetry.With(context.Background(), made), "c-1")
		for name, operation := range operations(made) {
			b.Run(name+"/"+provider.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					operation(ctx)
				}
			})
		}
	}
}

func ptr[T any](value T) *T { return &value }

func operations(made *telemetry.Telemetry) map[string]func(context.Context) {
	model := telemetry.ModelInfo{Provider: "openai", Name: "m", Address: "models.example", Port: 443}
	peer := telemetry.Peer{Ensemble: "atlas", Protocol: "2025-11-25", Transport: "tcp", Network: "http", Address: "tools.example", Port: 8080}
	call := telemetry.Call{Method: "tools/call", Tool: "find", ID: "3", Arguments: json.RawMessage(`{"q":"x"}`)}
	content := canister.Texts("found")
	usage := &canister.Usage{Input: 10, Output: 7}
	return map[string]func(context.Context){
		"agent": func(ctx context.Context) {
			_, a := telemetry.StartAgent(ctx, "", model)
			a.End(telemetry.AgentResult{Reason: "done", Usage: *usage, Exchanges: 1})
		},
		"chat": func(ctx context.Context) {
			_, c := telemetry.StartChat(ctx, telemetry.ChatRequest{Model: model, History: []canister.Canister{canister.User{Content: content}}})
			c.Streamed()
			c.End(telemetry.ChatResult{Message: canister.Assistant{Content: content, Usage: usage, Finish: canister.FinishStop}})
		},
		"tool": func(ctx context.Context) {
			_, o := telemetry.StartTool(ctx,
				telemetry.ToolCall{Name: "atlas__find", Ensemble: "atlas", Description: "Finds.", Call: "i-1", Arguments: call.Arguments})
			o.End(content, nil)
		},
		"request": func(ctx context.Context) {
			_, r := telemetry.StartRequest(ctx, call, peer)
			r.End(content, nil)
		},
		"serving": func(ctx context.Context) {
			_, r := made.StartServing(ctx, call, peer)
			r.End(content, nil)
		},
	}
}
