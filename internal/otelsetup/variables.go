// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
)

// settings holds the settings of the OTEL_* variables (OpenTelemetry, Environment Variable
// Specification). The exporters and the SDK read some of them themselves; this code
// handles the rest, and checks all of them.
type settings struct {
	traces, metrics protocol // empty for none
	// plain is set if no variable sets the endpoint or TLS: the collector is then on this
	// machine, without TLS (§ Configuration Options of OTLP; the SDK's own default has
	// TLS).
	plainTraces, plainMetrics bool
	content                   bool
	propagator                propagation.TextMapPropagator // nil for the default
	batches                   []trace.BatchSpanProcessorOption
	problems                  []string // without the values of secrets
	secrets                   []string
}

// protocol is the OTLP transport to the collector.
type protocol string

const (
	overGRPC protocol = "grpc"
	overHTTP protocol = "http/protobuf"
	asJSON   protocol = "http/json" // over HTTP, if the exporter supports it
)

// variables reads exports from the environment. An empty variable counts as unset.
type variables struct {
	lookup func(name string) string
	settings
}

// settingsOf reads the variables with lookup, for example os.Getenv.
func settingsOf(lookup func(name string) string) settings {
	v := variables{lookup: func(name string) string { return strings.TrimSpace(lookup(name)) }}
	if v.boolean("OTEL_SDK_DISABLED") {
		return v.settings
	}
	v.traces, v.plainTraces = v.signal("TRACES"), v.plain("TRACES")
	v.metrics, v.plainMetrics = v.signal("METRICS"), v.plain("METRICS")
	v.content = v.boolean("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
	v.propagators()
	if v.traces != "" {
		v.sampler()
		v.batching()
	}
	if v.metrics != "" {
		v.milliseconds("OTEL_METRIC_EXPORT_INTERVAL")
		v.milliseconds("OTEL_METRIC_EXPORT_TIMEOUT")
	}
	return v.settings
}

func (v *variables) wrong(name, format string, args ...any) {
	// A variable that both signals read is reported once.
	if problem := name + ": " + fmt.Sprintf(format, args...); !slices.Contains(v.problems, problem) {
		v.problems = append(v.problems, problem)
	}
}

// boolean reports whether the variable is "true", ignoring case. No other value is true
// (§ Boolean).
func (v *variables) boolean(name string) bool {
	switch value := v.lookup(name); strings.ToLower(value) {
	case "true":
		return true
	case "", "false":
	default:
		v.wrong(name, "expected true or false, not %q; using false", value)
	}
	return false
}

// signal returns the protocol for the traces or the metrics. Unlike the specification's
// default, nothing is exported unless a variable requests it.
func (v *variables) signal(signal string) protocol {
	exporter, endpoint := "OTEL_"+signal+"_EXPORTER", "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"
	wanted := false
	for name := range strings.SplitSeq(v.lookup(exporter), ",") {
		switch strings.TrimSpace(name) {
		case "otlp":
			wanted = true
		case "none":
		case "":
			wanted = wanted || v.lookup(exporter) == "" && (v.lookup(endpoint) != "" || v.lookup("OTEL_EXPORTER_OTLP_ENDPOINT") != "")
		case "console":
			v.wrong(exporter, "the console is reserved for results; --trace shows the spans of a turn")
		case "prometheus":
			v.wrong(exporter, "prometheus: consort serve --health ADDRESS has /metrics")
		default:
			v.wrong(exporter, "expected otlp or none, not %q", name)
		}
	}
	if !wanted {
		return ""
	}
	over := v.protocol(signal)
	if !v.endpoint(over, v.set(endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT")) {
		return ""
	}
	for _, family := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + signal + "_"} {
		v.headers(family + "HEADERS")
		v.milliseconds(family + "TIMEOUT")
		if value := v.lookup(family + "COMPRESSION"); value != "" && value != "gzip" && value != "none" {
			v.wrong(family+"COMPRESSION", "expected gzip or none, not %q", value)
		}
	}
	return over
}

// plain reports whether no variable sets the collector of a signal, or TLS for it.
func (v *variables) plain(signal string) bool {
	for _, family := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + signal + "_"} {
		for _, name := range []string{"ENDPOINT", "INSECURE", "CERTIFICATE", "CLIENT_CERTIFICATE"} {
			if v.lookup(family+name) != "" {
				return false
			}
		}
	}
	return true
}

// set returns the first of the names that has a value, or the last one.
func (v *variables) set(names ...string) string {
	for _, name := range names {
		if v.lookup(name) != "" {
			return name
		}
	}
	return names[len(names)-1]
}

func (v *variables) protocol(signal string) protocol {
	name := v.set("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch value := protocol(v.lookup(name)); value {
	case overGRPC, overHTTP, asJSON:
		return value
	case "":
	default:
		v.wrong(name, "expected grpc or http/protobuf, not %q; using http/protobuf", value)
	}
	return overHTTP
}

// endpoint reports whether the variable is a valid endpoint. If it is unset, the
// collector is on this machine.
func (v *variables) endpoint(over protocol, name string) bool {
	value := v.lookup(name)
	if value == "" {
		return true
	}
	u, err := url.Parse(value)
	if u != nil && u.User != nil {
		password, _ := u.User.Password()
		v.secrets = append(v.secrets, u.User.Username(), password)
	}
	switch {
	case err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return true
	case over == overGRPC && !strings.ContainsAny(value, "@ ") && strings.Contains(value, ":"):
		return true // a target of gRPC
	case over == overGRPC:
		v.wrong(name, "expected a URL such as http://127.0.0.1:4317; nothing is exported to it")
	default:
		v.wrong(name, "expected a URL such as http://127.0.0.1:4318, with http:// or https://; nothing is exported to it")
	}
	return false
}

// headers checks a variable of headers, whose values are secrets.
func (v *variables) headers(name string) {
	value := v.lookup(name)
	if value == "" {
		return
	}
	for pair := range strings.SplitSeq(value, ",") {
		key, text, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(text)
		if !found || strings.TrimSpace(key) == "" || err != nil {
			v.secrets = append(v.secrets, strings.TrimSpace(pair))
			v.wrong(name, "expected NAME=VALUE, with commas between them; other parts are left out")
		}
		for _, secret := range []string{text, decoded} {
			_, token, _ := strings.Cut(strings.TrimSpace(secret), " ")
			v.secrets = append(v.secrets, strings.TrimSpace(secret), token)
		}
	}
}

func (v *variables) milliseconds(name string) {
	value := v.lookup(name)
	if number, err := strconv.ParseInt(value, 10, 64); value != "" && (err != nil || number <= 0 || number > int64(24*time.Hour/time.Millisecond)) {
		v.wrong(name, "expected a number of milliseconds, such as 10000, not %q", value)
	}
}

// batching sets how spans are batched for export. The SDK would read these variables
// itself, and an invalid number would make it panic or spin.
func (v *variables) batching() {
	const day = int(24 * time.Hour / time.Millisecond)
	queue := v.number("OTEL_BSP_MAX_QUEUE_SIZE", trace.DefaultMaxQueueSize, 1<<20)
	batch := v.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", trace.DefaultMaxExportBatchSize, 1<<20)
	delay := v.number("OTEL_BSP_SCHEDULE_DELAY", trace.DefaultScheduleDelay, day)
	timeout := v.number("OTEL_BSP_EXPORT_TIMEOUT", trace.DefaultExportTimeout, day)
	v.batches = []trace.BatchSpanProcessorOption{
		trace.WithMaxQueueSize(queue), trace.WithMaxExportBatchSize(min(batch, queue)),
		trace.WithBatchTimeout(time.Duration(delay) * time.Millisecond),
		trace.WithExportTimeout(time.Duration(timeout) * time.Millisecond),
	}
}

// number returns the variable's value, or usual unless it is a number from 1 to most.
func (v *variables) number(name string, usual, most int) int {
	value := v.lookup(name)
	if value == "" {
		return usual
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < 1 || number > most {
		v.wrong(name, "expected a number from 1 to %d, not %q; using %d", most, value, usual)
		return usual
	}
	return number
}

// sampler checks variables that the SDK itself reads.
func (v *variables) sampler() {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	switch value := strings.ToLower(v.lookup(name)); value {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
	case "traceidratio", "parentbased_traceidratio":
		ratio, err := strconv.ParseFloat(v.lookup(argument), 64)
		if v.lookup(argument) != "" && (err != nil || !(ratio >= 0 && ratio <= 1)) {
			v.wrong(argument, "expected a share between 0 and 1, such as 0.1; using 1")
		}
	default:
		v.wrong(name, "expected always_on, always_off or traceidratio, or one of them with the prefix parentbased_, not %q; everything is sampled", value)
	}
}

// propagators sets the propagation format of trace context; the default is W3C Trace
// Context.
func (v *variables) propagators() {
	const name = "OTEL_PROPAGATORS"
	if v.lookup(name) == "" {
		return
	}
	var all []propagation.TextMapPropagator
	for kind := range strings.SplitSeq(v.lookup(name), ",") {
		switch strings.TrimSpace(kind) {
		case "tracecontext":
			all = append(all, propagation.TraceContext{})
		case "baggage":
			all = append(all, propagation.Baggage{})
		case "none", "":
		default:
			v.wrong(name, "expected tracecontext, baggage or none, not %q", kind)
		}
	}
	v.propagator = propagation.NewCompositeTextMapPropagator(all...)
}
