// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

// environment is variables, one a line.
func environment(lines string) func(string) string {
	return func(name string) string {
		for line := range strings.SplitSeq(lines, "\n") {
			if key, value, _ := strings.Cut(line, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestExportsOf(t *testing.T) {
	for lines, want := range map[string]struct {
		traces, metrics protocol
		problems        string // the variables that are wrong
	}{
		"": {},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318":                                                      {overHTTP, overHTTP, ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT= https://h/otlp \nOTEL_SDK_DISABLED=false":                          {overHTTP, overHTTP, ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318\nOTEL_SDK_DISABLED=True":                              {},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318\nOTEL_SDK_DISABLED=1":                                 {overHTTP, overHTTP, "OTEL_SDK_DISABLED"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h":                                                    {overHTTP, "", ""},
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://h":                                                   {"", overHTTP, ""},
		"OTEL_TRACES_EXPORTER=otlp":                                                                      {overHTTP, "", ""},
		"OTEL_TRACES_EXPORTER=otlp, none\nOTEL_METRICS_EXPORTER=otlp":                                    {overHTTP, overHTTP, ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nOTEL_METRICS_EXPORTER=none":                               {overHTTP, "", ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nOTEL_METRICS_EXPORTER=console":                            {overHTTP, "", "OTEL_METRICS_EXPORTER"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nOTEL_METRICS_EXPORTER=prometheus":                         {overHTTP, "", "OTEL_METRICS_EXPORTER"},
		"OTEL_TRACES_EXPORTER=jaeger":                                                                    {"", "", "OTEL_TRACES_EXPORTER"},
		"OTEL_TRACES_EXPORTER=otlp,jaeger":                                                               {overHTTP, "", "OTEL_TRACES_EXPORTER"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                    {overGRPC, "", ""},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_PROTOCOL=http/json":                               {asJSON, "", ""},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_PROTOCOL=thrift":                                  {overHTTP, "", "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_METRICS_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc": {overGRPC, overHTTP, ""},
		// The usual mistakes.
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318":                                               {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=h":                                                            {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://":                                                      {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://h":                                                      {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://[::1":                                                  {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc":             {overGRPC, overGRPC, ""},
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc":                  {"", "", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_TRACES_SAMPLER=parentbased_traceidratio":                  {overHTTP, "", ""},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=NaN": {overHTTP, "", "OTEL_TRACES_SAMPLER_ARG"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=10%": {overHTTP, "", "OTEL_TRACES_SAMPLER_ARG"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_TRACES_SAMPLER=half":                                      {overHTTP, "", "OTEL_TRACES_SAMPLER"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_TIMEOUT=-1":                                 {overHTTP, "", "OTEL_EXPORTER_OTLP_TIMEOUT"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zip":                     {overHTTP, "", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_HEADERS=a=b,c=d%20e":                        {overHTTP, "", ""},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_HEADERS=a=b,,c=%z":                          {overHTTP, "", "OTEL_EXPORTER_OTLP_HEADERS"},
		"OTEL_METRICS_EXPORTER=otlp\nOTEL_METRIC_EXPORT_INTERVAL=1m":                               {"", overHTTP, "OTEL_METRIC_EXPORT_INTERVAL"},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_BSP_MAX_QUEUE_SIZE=1\nOTEL_BSP_SCHEDULE_DELAY=1":          {overHTTP, "", ""},
		"OTEL_TRACES_EXPORTER=otlp\nOTEL_BSP_EXPORT_TIMEOUT=1s":                                    {overHTTP, "", "OTEL_BSP_EXPORT_TIMEOUT"},
		"OTEL_PROPAGATORS=tracecontext,baggage,none":                                               {},
		"OTEL_PROPAGATORS=b3": {"", "", "OTEL_PROPAGATORS"},
	} {
		got := settingsOf(environment(lines))
		var wrong []string
		for _, problem := range got.problems {
			name, _, _ := strings.Cut(problem, ":")
			wrong = append(wrong, name)
		}
		if got.traces != want.traces || got.metrics != want.metrics || strings.Join(wrong, " ") != want.problems {
			t.Errorf("%q: traces %q, metrics %q, problems %q", lines, got.traces, got.metrics, got.problems)
		}
	}
}

// Without a word of where the collector is, it is on this machine and has no
// TLS; who says anything of it is listened to.
func TestCollectorOfThisMachine(t *testing.T) {
	for lines, want := range map[string][2]bool{ // traces, metrics
		"":                                      {true, true},
		"OTEL_EXPORTER_OTLP_HEADERS=a=b":        {true, true},
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://h": {},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://h":   {false, true},
		"OTEL_EXPORTER_OTLP_INSECURE=false":              {},
		"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE=/ca.pem": {true, false},
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/me.pem":  {},
	} {
		got := settingsOf(environment("OTEL_TRACES_EXPORTER=otlp\nOTEL_METRICS_EXPORTER=otlp\n" + lines))
		if got.plainTraces != want[0] || got.plainMetrics != want[1] {
			t.Errorf("%q: plain traces %t, metrics %t", lines, got.plainTraces, got.plainMetrics)
		}
	}
}

// Numbers that mean nothing are passed over, whichever they are: no batch is
// made that the SDK panics at, or that makes its timer run without rest.
func TestBatches(t *testing.T) {
	for _, value := range []string{"-3", "0", "99999999999999", "many", "1"} {
		for _, name := range []string{"MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "SCHEDULE_DELAY", "EXPORT_TIMEOUT"} {
			name = "OTEL_BSP_" + name
			got := settingsOf(environment("OTEL_TRACES_EXPORTER=otlp\n" + name + "=" + value))
			if told := len(got.problems) == 1 && strings.HasPrefix(got.problems[0], name); told != (value != "1") {
				t.Errorf("%s=%s: problems %q", name, value, got.problems)
			}
			var options trace.BatchSpanProcessorOptions
			for _, option := range got.batches {
				option(&options)
			}
			if options.MaxQueueSize < 1 || options.MaxQueueSize > 1<<20 || options.MaxExportBatchSize < 1 ||
				options.MaxExportBatchSize > options.MaxQueueSize || options.BatchTimeout < time.Millisecond || options.ExportTimeout < time.Millisecond {
				t.Errorf("%s=%s: %+v", name, value, options)
			}
		}
	}
}

// No problem shows what a header, or the credentials of an address, hold, and
// nothing panics.
func FuzzExportsOf(f *testing.F) {
	f.Add("otlp", "http://u:hunter2-hunter2@h:1/", "authorization=Bearer hunter2-hunter2,x=%zz", "grpc", "0.5")
	f.Add("console,otlp", "h:1", "hunter2-hunter2", "http/protobuf", "always_on")
	f.Fuzz(func(t *testing.T, exporter, endpoint, headers, protocol, sampler string) {
		got := settingsOf(func(name string) string {
			switch {
			case strings.HasSuffix(name, "_HEADERS"):
				return headers
			case strings.HasSuffix(name, "ENDPOINT"):
				return endpoint
			case strings.HasSuffix(name, "_EXPORTER"):
				return exporter
			case strings.HasSuffix(name, "_PROTOCOL"):
				return protocol
			}
			return sampler
		})
		for _, problem := range got.problems {
			if strings.Contains(problem, "hunter2") && !strings.Contains(exporter+protocol+sampler, "hunter2") {
				t.Errorf("%s", problem)
			}
		}
	})
}
