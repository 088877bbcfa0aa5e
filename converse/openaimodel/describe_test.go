// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		base     string
		provider string // that is chosen
		want     telemetry.ModelInfo
	}{
		{"https://api.openai.com/v1", "", telemetry.ModelInfo{Provider: "openai", Address: "api.openai.com", Port: 443}},
		{"https://eu.api.openai.com/v1", "", telemetry.ModelInfo{Provider: "openai", Address: "eu.api.openai.com", Port: 443}},
		{"https://Me.OpenAI.Azure.com/openai/v1", "", telemetry.ModelInfo{Provider: "azure.ai.openai", Address: "Me.OpenAI.Azure.com", Port: 443}},
		{"https://api.mistral.ai/v1", "", telemetry.ModelInfo{Provider: "mistral_ai", Address: "api.mistral.ai", Port: 443}},
		{"http://localhost:8080/v1", "", telemetry.ModelInfo{Provider: "openai_compatible", Address: "localhost", Port: 8080}},
		{"http://[::1]/v1", "", telemetry.ModelInfo{Provider: "openai_compatible", Address: "::1", Port: 80}},
		{"http://openai.example.com/v1", "", telemetry.ModelInfo{Provider: "openai_compatible", Address: "openai.example.com", Port: 80}},
		{"https://api.openai.com/v1", "house", telemetry.ModelInfo{Provider: "house", Address: "api.openai.com", Port: 443}},
	} {
		model, err := openaimodel.New("m", &openaimodel.Options{BaseURL: test.base, Provider: test.provider})
		if err != nil {
			t.Fatal(err)
		}
		got := model.Describe()
		if got.Provider != test.want.Provider || got.Address != test.want.Address || got.Port != test.want.Port || got.Name != "m" {
			t.Errorf("%s is described as %+v, want %+v", test.base, got, test.want)
		}
	}
}

func TestDescribeSettings(t *testing.T) {
	model, err := openaimodel.New("m", &openaimodel.Options{
		BaseURL: "http://localhost/v1", NoStream: true, MaxTokens: 7, Temperature: new(0.5), TopP: new(0.9), Seed: new(int64(3)),
		Stop: []string{"."}, ResponseFormat: &openaimodel.ResponseFormat{}, ExtraBody: map[string]any{"top_p": 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := model.Describe()
	if !got.Whole || !got.JSON || got.MaxTokens != 7 || *got.Temperature != 0.5 || got.TopP != nil || *got.Seed != 3 || len(got.Stop) != 1 {
		t.Errorf("the model is described as %+v", got)
	}
}

// The context of the trace goes to a server that is said to take part, in every
// attempt, and to no other.
func TestTraceHeaders(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Traceparent"))
		if len(got) == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`))
	}))
	defer server.Close()
	seen, err := telemetry.New(&telemetry.Options{Tracers: sdktrace.NewTracerProvider()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := telemetry.StartAgent(telemetry.With(t.Context(), seen), "", telemetry.ModelInfo{})
	defer span.End(telemetry.AgentResult{})
	headers := carrierOf{}
	telemetry.Inject(ctx, headers)
	for _, send := range []bool{false, true} {
		got = nil
		exchangeOnce(ctx, t, &openaimodel.Options{BaseURL: server.URL, NoStream: true, TraceHeaders: send})
		want := ""
		if send {
			want = headers["traceparent"]
		}
		if len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("with TraceHeaders %v, the server was sent the traceparents %q, want %q twice", send, got, want)
		}
	}
}

// What a model logs during a turn says of which conversation it is.
func TestLogOfATurn(t *testing.T) {
	core, lines := observer.New(zapcore.DebugLevel)
	model, err := openaimodel.New("m", &openaimodel.Options{BaseURL: "http://127.0.0.1:1/v1", MaxRetries: -1, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	request := &converse.Request{
		History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")}},
		Tools:   &converse.Toolset{Definitions: []*invoker.Definition{{Name: "odd", InputSchema: json.RawMessage(`{"type":"string"}`)}}},
		NewID:   func() string { return "id" },
	}
	for range model.Exchange(telemetry.WithConversation(t.Context(), "talk-1"), request) {
	}
	if lines.Len() != 1 || lines.All()[0].ContextMap()["conversation_id"] != "talk-1" {
		t.Errorf("the log has %v", lines.All())
	}
}

type carrierOf map[string]string

func (c carrierOf) Get(name string) string { return c[name] }
func (c carrierOf) Set(name, value string) { c[name] = value }
func (c carrierOf) Keys() []string         { return nil }

func exchangeOnce(ctx context.Context, t *testing.T, options *openaimodel.Options) {
	t.Helper()
	model, err := openaimodel.New("m", options)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	request := &converse.Request{
		History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")}},
		Tools:   &converse.Toolset{}, NewID: func() string { return "id" },
	}
	for _, err := range model.Exchange(ctx, request) {
		if err != nil {
			t.Fatal(err)
		}
	}
}
