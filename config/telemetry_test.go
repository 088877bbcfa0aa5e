// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// All parts are seen by one Telemetry, whose texts are without the secrets of
// the configuration, and only then seen by the program's own function.
func TestAssembledPartsAreSeen(t *testing.T) {
	t.Run("by a program that redacts", func(t *testing.T) { seenParts(t, true) })
	t.Run("by a program that does not", func(t *testing.T) { seenParts(t, false) })
}

func seenParts(t *testing.T, redacts bool) {
	c, err := parse("model = {name = 'm', base_url = 'http://127.0.0.1:1/v1', api_key = 'env:WEATHER_API_KEY', max_retries = 0}\n"+
		"[mcp.a]\ncommand = ['false']\n[serve]\ngrpc = '127.0.0.1:0'\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	var mu sync.Mutex
	var cleaned []string
	options := &telemetry.Options{Tracers: trace.NewTracerProvider(trace.WithSpanProcessor(recorder)), Content: true}
	if redacts {
		options.Redact = func(text string) string {
			mu.Lock()
			defer mu.Unlock()
			cleaned = append(cleaned, text)
			return text
		}
	}
	parts, err := config.Assemble(c, &config.AssembleOptions{Telemetry: options})
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	seen := parts.Telemetry
	if seen == nil || parts.Options.Telemetry != seen || parts.Serve.Telemetry != seen || parts.ServeGRPC.Telemetry != seen {
		t.Errorf("the parts are seen by %p: %+v", seen, parts)
	}
	talk := converse.New(parts.Model, parts.Roster, parts.Options)
	defer talk.Close(t.Context())
	for range talk.Send(t.Context(), canister.Text("I am weather-5552.")) {
	}
	_ = parts.Roster.Ensembles()[0].Connect(t.Context())
	names := map[string]bool{}
	for _, span := range recorder.Ended() {
		names[span.Name()] = true
		for _, a := range span.Attributes() {
			if text := a.Value.String(); strings.Contains(text, "weather-5552") {
				t.Errorf("%s of %s is %s", a.Key, span.Name(), text)
			}
		}
	}
	if !names["invoke_agent"] || !names["chat m"] || !names["connect a"] {
		t.Errorf("the spans are %v", names)
	}
	for _, text := range cleaned {
		if strings.Contains(text, "weather-5552") {
			t.Errorf("the program's function was given %s", text)
		}
	}
	if redacts && len(cleaned) == 0 {
		t.Error("the program's function was not asked")
	}
}

// An assembly that fails leaves no ensemble in the metrics, and those of the assembly in use stay.
func TestFailedAssemblyIsNotMeasured(t *testing.T) {
	reader := metric.NewManualReader()
	options := &config.AssembleOptions{Replaceable: true, Telemetry: &telemetry.Options{Meters: metric.NewMeterProvider(metric.WithReader(reader))}}
	const same = "[mcp.same]\ncommand = ['true']\n"
	first, err := config.Assemble(parsed(t, same), options)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close(t.Context())
	own := ensemble.New("own", ensemble.LocalSource(), &ensemble.Options{Telemetry: first.Telemetry})
	defer own.Close(t.Context())
	broken := same + "[mcp.added]\ncommand = ['true']\n[mcp.broken]\ncommand = ['true']\npin = '/nonexistent/pins.json'\n"
	_, err = config.Assemble(parsed(t, broken), &config.AssembleOptions{Replaceable: true, Previous: first, Ensembles: []*ensemble.Ensemble{own}})
	if err == nil {
		t.Fatal("the pin file was not missed")
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", all)
	for name, want := range map[string]bool{"same": true, "own": true, "added": false} {
		if got := strings.Contains(text, name); got != want {
			t.Errorf("%s is measured: %v, want %v", name, got, want)
		}
	}
}
