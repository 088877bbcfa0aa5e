// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/otelsetup"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheusmodel "github.com/prometheus/common/model"
)

// weatherTurn is a configuration whose model asks a tool once.
func weatherTurn(t *testing.T) string {
	t.Helper()
	return file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("Snow.")), atlas(0))
}

// A turn arrives at a collector: its spans, whose they are, and its metrics.
func TestExport(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"http/protobuf", "grpc"} {
		t.Run(over, func(t *testing.T) {
			c := newCollector(t)
			endpoint := c.http
			if over == "grpc" {
				endpoint = c.grpc
			}
			o := run{env: []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + over,
				"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test,service.name=overruled", "OTEL_SERVICE_NAME=advisor",
				"OTEL_EXPORTER_OTLP_HEADERS=x-key=a-secret-of-the-collector",
			}}.consort(t, "run", "hi", "--config", weatherTurn(t)).expect(t, exit.Done)
			if o.stderr != "" && strings.Contains(o.stderr, "WARN") {
				t.Errorf("standard error: %s", o.stderr)
			}
			paths, _ := c.paths(t)
			for _, want := range []string{
				"invoke_agent", "invoke_agent > chat scripted", "invoke_agent > execute_tool atlas__weather",
				"invoke_agent > execute_tool atlas__weather > tools/call weather", "connect atlas", "connect atlas > tools/list",
			} {
				if !slices.Contains(paths, want) {
					t.Errorf("%q is not among %q", want, paths)
				}
			}
			for key, want := range map[string]string{
				"service.name": "advisor", "deployment.environment.name": "test", "service.version": version(),
				"telemetry.sdk.language": "go", "process.executable.name": "consort",
			} {
				if got := c.about[key]; got != want && key != "service.version" || got == "" {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			for _, never := range []string{"process.command_args", "process.command_line"} {
				if _, there := c.about[never]; there {
					t.Errorf("the resource has %s", never)
				}
			}
			for _, name := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "mcp.client.operation.duration"} {
				if !c.measured(name) {
					t.Errorf("%s was not measured", name)
				}
			}
			if len(c.headers) == 0 || c.headers[0] != "a-secret-of-the-collector" {
				t.Errorf("the headers are %q", c.headers)
			}
			lacks(t, "the spans", c.all(), "Oslo", "Snow.")
		})
	}
}

// What messages hold is exported on request, without secrets, and one signal can
// be had without the other.
func TestExportedContent(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	table, _ := library(t, "")
	run{env: []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + c.http + "/v1/traces", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=TRUE",
	}}.consort(t, "run", "A question.", "--config", file(t, model(t, says("", calls("library__leak", `{}`)), says("An answer.")), table, allows)).expect(t, exit.Done)
	contains(t, "the spans", c.all(), "A question.", "An answer.", "it is [secret]")
	lacks(t, "the spans", c.all(), password)
	if len(c.metrics) != 0 {
		t.Errorf("there are metrics: %s", c.all())
	}
}

// All commands that do work export, each in its own trace.
func TestWhoExports(t *testing.T) {
	t.Parallel()
	config := weatherTurn(t)
	for name, test := range map[string]struct {
		r    run
		args []string
		want string
	}{
		"call": {run{}, []string{"call", "atlas", "weather", `{"city":"Oslo"}`}, "execute_tool atlas__weather > tools/call weather"},
		"chat": {run{stdin: "hi\n"}, []string{"chat"}, "invoke_agent > chat scripted"},
	} {
		c := newCollector(t)
		test.r.env = []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}
		test.r.consort(t, append(test.args, "--config", config)...).expect(t, exit.Done)
		if paths, _ := c.paths(t); !slices.Contains(paths, test.want) {
			t.Errorf("%s: %q", name, paths)
		}
		if len(c.metrics) > 0 {
			t.Errorf("%s: there are metrics", name)
		}
	}
	for _, args := range [][]string{{"tools"}, {"check", "--offline"}} {
		c := newCollector(t)
		run{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}}.consort(t, append(args, "--config", config)...)
		if c.all() != "" {
			t.Errorf("%s exports %s", args, c.all())
		}
	}
}

// The metrics of ensembles are exported by commands that end before the first interval
// has passed, including those recorded when the ensembles are closed.
func TestMetricsOfEnsemblesAreExported(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run":  {"run", "hi", "--config", weatherTurn(t)},
		"call": {"call", "atlas", "weather", `{"city":"Oslo"}`, "--config", file(t, atlas(0))},
		"demo": {"demo"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			run{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}}.consort(t, args...).expect(t, exit.Done)
			for _, metric := range []string{
				"consort.ensemble.states", "consort.ensemble.calls", "consort.ensemble.tools", "consort.ensemble.tools.aside",
				"consort.ensemble.restarts", "mcp.client.session.duration",
			} {
				if !c.measured(metric) {
					t.Errorf("%s was not exported", metric)
				}
			}
		})
	}
}

// A served call is in the caller's trace, and its metrics are available to Prometheus.
func TestServeIsSeen(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	table, _ := library(t, "")
	s := serveWith(t, run{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}}, true,
		"--http", "127.0.0.1:0", "--health", "127.0.0.1:0", "--config", file(t, table))
	if got := called(t, s.connect(""), "library__echo", `{"text":"hi"}`); got != `{"text":"hi"}` {
		t.Errorf("echo: %s", got)
	}
	families := scrape(t, s.supervised())
	for host, want := range map[string]int{"evil.example": 403, "evil.example:80": 403, "localhost:9": 200, "[::1]:9": 200, "127.0.0.1": 200} {
		if status := statusFor(t, s.supervised()+"/metrics", host); status != want {
			t.Errorf("Host %s: status %d", host, status)
		}
	}
	served := families["mcp_server_operation_duration_seconds"]
	if served == nil || served.GetMetric()[0].GetHistogram().GetSampleCount() == 0 {
		t.Errorf("served calls are not measured: %v", served)
	}
	states := families["consort_ensemble_states"]
	if states == nil {
		t.Fatalf("no states among %d families", len(families))
	}
	ready := 0.0
	for _, m := range states.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["consort_ensemble"] == "library" && labels["consort_ensemble_state"] == "ready" {
			ready = m.GetGauge().GetValue()
		}
	}
	if ready != 1 {
		t.Errorf("the states are %v", states)
	}
	info := families["target_info"]
	if info == nil || !strings.Contains(info.String(), `name:"service_name" value:"consort"`) && !strings.Contains(info.String(), `"consort"`) {
		t.Errorf("target_info is %v", info)
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
	if paths, _ := c.paths(t); !slices.Contains(paths, "tools/call library__echo > tools/call echo") {
		t.Errorf("the spans are %q", paths)
	}
	if !c.measured("mcp.server.operation.duration") {
		t.Error("the collector has no metrics")
	}
}

// statusFor asks for a page of a server by a name.
func statusFor(t *testing.T, address, host string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// scrape reads and parses the metrics of a process.
func scrape(t *testing.T, base string) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%s, %s", response.Status, kind)
	}
	parser := expfmt.NewTextParser(prometheusmodel.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// Nothing is made, and nothing said, without a variable or with all disabled.
func TestNothingIsExportedUnasked(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	for _, env := range [][]string{
		nil,
		{"OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http},
		{"OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http},
	} {
		o := run{env: env}.consort(t, "call", "atlas", "weather", `{"city":"Oslo"}`, "--config", file(t, atlas(0))).expect(t, exit.Done)
		if o.stderr != "" {
			t.Errorf("%q: %s", env, o.stderr)
		}
	}
	if c.all() != "" {
		t.Errorf("exported: %s", c.all())
	}
}

// Variables that are wrong are told of once each, show no secret, and change
// nothing else.
func TestWrongVariables(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	o := run{env: []string{
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_HEADERS=" + secret + ",x=%zz" + secret, "OTEL_EXPORTER_OTLP_PROTOCOL=carrier-pigeon", "OTEL_EXPORTER_OTLP_TIMEOUT=soon",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere.pem", "OTEL_TRACES_SAMPLER=sometimes", "OTEL_RESOURCE_ATTRIBUTES=what", "OTEL_PROPAGATORS=b3",
	}}.consort(t, "call", "atlas", "weather", `{"city":"Oslo"}`, "--config", file(t, atlas(0))).expect(t, exit.Done)
	lacks(t, "standard error", o.stderr, secret, "logr", ".go:")
	for _, name := range []string{
		"OTEL_METRICS_EXPORTER", "_HEADERS", "_PROTOCOL", "_TIMEOUT", "_CERTIFICATE", "OTEL_TRACES_SAMPLER", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_PROPAGATORS",
	} {
		if n := len(regexp.MustCompile(`"problem": "[A-Z_]*`+name+`[:,]`).FindAllString(o.stderr, -1)); n != 1 {
			t.Errorf("%s is told of %d times:\n%s", name, n, o.stderr)
		}
	}
	if o.stdout == "" {
		t.Error("there is no answer")
	}
}

// A collector that is away, that refuses, or that never answers is a line of the
// log, and does not keep the command from ending.
func TestCollectorsThatAreAway(t *testing.T) {
	t.Parallel()
	config := file(t, atlas(0))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, env := range map[string][]string{
		"refused":       {"OTEL_EXPORTER_OTLP_ENDPOINT=http://someone:hunter2-hunter2@127.0.0.1:1"},
		"refused, gRPC": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"silent":        {"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + silent.Addr().String()},
		"silent, gRPC":  {"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + silent.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"unknown, gRPC": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.invalid:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"no TLS":        {"OTEL_EXPORTER_OTLP_ENDPOINT=https://" + silent.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			o := run{env: env}.consort(t, "call", "atlas", "weather", `{"city":"Oslo"}`, "--config", config, "--log-level", "warn").expect(t, exit.Done)
			if took := time.Since(began); took > otelsetup.FlushTime+20*time.Second {
				t.Errorf("it took %s", took)
			}
			lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
			for _, line := range lines {
				if !strings.Contains(line, "WARN\ttraces or metrics were not exported\t{\"event\": \"telemetry.export.failed\"") {
					t.Errorf("standard error has %q", line)
				}
			}
			if name == "silent" || name == "silent, gRPC" {
				contains(t, "standard error", o.stderr, "the collector did not accept the spans before the command ended")
			}
			if len(lines) > 2 {
				t.Errorf("%d lines: %s", len(lines), o.stderr)
			}
			lacks(t, "standard error", o.stderr, "hunter2")
		})
	}
}
