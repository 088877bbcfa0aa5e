// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// family is a metric as Prometheus has it once it was scraped.
type family struct {
	kind   dto.MetricType
	labels map[string][]string // the values that were seen, by name
}

func (f *family) add(label, value string) {
	if !slices.Contains(f.labels[label], value) {
		f.labels[label] = append(f.labels[label], value)
	}
}

// meter is a Telemetry whose metrics can be scraped.
type meter struct {
	*telemetry.Telemetry
	instruments *instruments
	url         string
}

func newMeter(t *testing.T, options telemetry.Options) *meter {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{instruments: &instruments{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))}}
	options.Meters = m.instruments
	if m.Telemetry, err = telemetry.New(&options); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// scrape reads the metrics as Prometheus does: by the names of their samples.
func (m *meter) scrape(t *testing.T) map[string]*family {
	t.Helper()
	return scrape(t, m.url)
}

func scrape(t *testing.T, url string) map[string]*family {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	samples := make(map[string]*family)
	for name, read := range families {
		names := []string{name}
		if read.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{name + "_bucket", name + "_count", name + "_sum"}
		}
		for i, name := range names {
			made := &family{read.GetType(), make(map[string][]string)}
			samples[name] = made
			for _, series := range read.GetMetric() {
				for _, label := range series.GetLabel() {
					made.add(label.GetName(), label.GetValue())
				}
			}
			if read.GetType() == dto.MetricType_HISTOGRAM && i == 0 {
				made.add("le", "+Inf")
			}
		}
	}
	return samples
}

// instruments records the instruments created by a provider.
type instruments struct {
	metric.MeterProvider
	mu    sync.Mutex
	names []string
}

func (i *instruments) Meter(name string, options ...metric.MeterOption) metric.Meter {
	return noting{i.MeterProvider.Meter(name, options...), i}
}

func (i *instruments) note(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names = append(i.names, name)
}

// noting is a meter that records the instruments it creates: the kinds that telemetry
// uses. Another kind would be missed here, and is reported by its panel.
type noting struct {
	metric.Meter
	all *instruments
}

func (n noting) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	n.all.note(name)
	return n.Meter.Float64Histogram(name, o...)
}

func (n noting) Int64Histogram(name string, o ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	n.all.note(name)
	return n.Meter.Int64Histogram(name, o...)
}

func (n noting) Int64ObservableGauge(name string, o ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	n.all.note(name)
	return n.Meter.Int64ObservableGauge(name, o...)
}

func (n noting) Int64ObservableCounter(name string, o ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	n.all.note(name)
	return n.Meter.Int64ObservableCounter(name, o...)
}

// everything lets a Telemetry measure whatever it can, with every attribute,
// well and badly. TestRealMetricsAreThese holds it against a conversation.
func everything(t *testing.T, seen *telemetry.Telemetry) {
	t.Helper()
	for _, fault := range []*telemetry.Fault{nil, telemetry.FaultOf(invoker.Failf(invoker.Timeout, "Nobody answered."))} {
		conversation(telemetry.With(t.Context(), seen), fault)
		requests(telemetry.With(t.Context(), seen), fault)
	}
	atlas := ensemble.New("atlas", ensembletest.NewSource(ensembletest.Echo()), &ensemble.Options{Telemetry: seen})
	t.Cleanup(func() { _ = atlas.Close(context.Background()) })
}

// reasons are the reasons of the ends of turns; "" stands for a turn that fails.
var reasons = []converse.Reason{
	converse.ReasonAnswered, converse.ReasonLength, converse.ReasonContentFilter, converse.ReasonRefusal, converse.ReasonNothing,
	converse.ReasonExchanges, converse.ReasonTime, converse.ReasonTokens,
}

func conversation(ctx context.Context, fault *telemetry.Fault) {
	asked := telemetry.ModelInfo{Provider: "openai", Name: "gpt", Address: "127.0.0.1", Port: 1}
	if fault == nil {
		for _, reason := range reasons {
			_, agent := telemetry.StartAgent(ctx, "guide", asked)
			agent.End(telemetry.AgentResult{Reason: string(reason)})
		}
	} else {
		_, agent := telemetry.StartAgent(ctx, "guide", asked)
		agent.End(telemetry.AgentResult{Fault: fault})
	}
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Model: asked})
	chat.Streamed()
	chat.End(telemetry.ChatResult{Message: canister.Assistant{Model: "gpt-1", Usage: &canister.Usage{Input: 1, Output: 1}}, Fault: fault})
	_, tool := telemetry.StartTool(ctx, telemetry.ToolCall{Name: "atlas__weather", Ensemble: "atlas"})
	tool.End(nil, fault)
}

func requests(ctx context.Context, fault *telemetry.Fault) {
	peer := telemetry.Peer{Ensemble: "atlas", Protocol: "2025-11-25", Transport: "tcp", Network: "grpc", System: "grpc", Address: "127.0.0.1", Port: 1}
	client := telemetry.Peer{Protocol: "2025-11-25", Transport: "tcp", Network: "grpc", System: "grpc", Address: "127.0.0.1", Port: 1}
	for _, call := range []telemetry.Call{{Method: "tools/call", Tool: "weather"}, {Method: "prompts/get", Prompt: "brief"}} {
		_, out := telemetry.StartRequest(ctx, call, peer)
		_, in := telemetry.From(ctx).StartServing(ctx, call, client)
		if fault != nil {
			out.Refused("UNAVAILABLE")
			in.Refused("UNAVAILABLE")
		}
		out.End(nil, fault)
		in.End(nil, fault)
	}
	telemetry.From(ctx).StartSession(peer, true).End(fault)
	telemetry.From(ctx).StartSession(client, false).End(fault)
	_, connect := telemetry.StartConnect(ctx, "atlas")
	connect.End(1, 0, fault)
}

// sometimes are labels that a successful turn does not set, and metrics that its servers
// do not have: those of sessions in older protocols.
var sometimes = []string{"error_type", "rpc_response_status_code", "gen_ai_prompt_name", "gen_ai_agent_name", "mcp_server_session_duration_seconds"}

// The metrics of a conversation with its servers are those assumed by the dashboard, with
// the same labels.
func TestRealMetricsAreThese(t *testing.T) {
	m, talk := newMeter(t, noOptions), newMeter(t, noOptions)
	everything(t, m.Telemetry)
	possible := m.scrape(t)
	var came map[string]*family
	turn(t, "", watching{meters: talk.instruments, closing: func() { came = talk.scrape(t) }})
	maps.Copy(came, talk.scrape(t)) // with the sessions, and without the gauges
	for name, family := range came {
		for label := range family.labels {
			if possible[name] == nil || possible[name].labels[label] == nil {
				t.Errorf("%s has the label %s, of which the tests of the dashboard know nothing", name, label)
			}
		}
	}
	for name, family := range possible {
		if came[name] == nil {
			if !slices.Contains(sometimes, base(name)) {
				t.Errorf("%s is not measured", name)
			}
			continue
		}
		for label := range family.labels {
			if came[name].labels[label] == nil && !slices.Contains(sometimes, label) {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
}
