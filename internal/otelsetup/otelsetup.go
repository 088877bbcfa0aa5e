// SPDX-License-Identifier: Apache-2.0

// Package otelsetup exports the traces and metrics of the command as the OTEL_* variables
// of the environment say: it makes the exporters, the description of this process, and
// the providers of tracers and meters.
package otelsetup

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

// FlushTime bounds how long the command waits for a collector when it ends.
const FlushTime = 3 * time.Second

// Exports exports the traces and metrics of the command to a collector, to a scraper and
// to the screen, each only if requested.
type Exports struct {
	settings
	log     *exportLog
	tracers *trace.TracerProvider // nil for no traces
	meters  *metric.MeterProvider // nil for no metrics
	pushed  *pushedMetrics        // nil unless metrics go to a collector
	Scrape  http.Handler          // of the metrics; nil unless wanted
	Spans   *Recorder             // nil unless wanted

	ended context.Context // stops running exports
	end   context.CancelFunc
}

// Options is the telemetry that the command line requests, in addition to the variables.
type Options struct {
	Trace   bool   // keep the spans, in [Exports.Spans]
	Scrape  bool   // serve the metrics to a scraper, with [Exports.Scrape]
	Version string // of this program
}

// Start starts the exports that the variables configure. Nothing connects yet. It logs an
// invalid variable and ignores it, as the specification requires. It returns an error
// only if an exporter cannot be created. The caller must close the result in any case.
func Start(lookup func(string) string, want Options, logger *zap.Logger) (*Exports, error) {
	w := &Exports{settings: settingsOf(lookup)}
	w.log = newExportLog(logger, redact.New(w.secrets...))
	for _, problem := range w.problems {
		w.log.wrong(problem)
	}
	w.ended, w.end = context.WithCancel(context.Background())
	if w.traces == "" && w.metrics == "" && !want.Trace && !want.Scrape {
		return w, nil
	}
	otel.SetErrorHandler(w.log)
	otel.SetLogger(w.log.internal())
	defer w.log.begin()
	of := w.resource(want.Version)
	if err := w.startTraces(of, want.Trace); err != nil {
		return w, err
	}
	return w, w.startMetrics(of, want.Scrape)
}

// Telemetry returns the options of the telemetry, or nil if nothing is exported.
func (w *Exports) Telemetry() *telemetry.Options {
	if w.tracers == nil && w.meters == nil {
		return nil
	}
	options := &telemetry.Options{Propagator: w.propagator, Content: w.content, Redact: w.log.clean, Panicked: w.log.Handle}
	if w.tracers != nil { // a nil pointer would make a non-nil interface
		options.Tracers = w.tracers
	}
	if w.meters != nil {
		options.Meters = w.meters
	}
	return options
}

// resource describes this process, with OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME
// applied. It excludes the command line, which may contain prompts.
func (w *Exports) resource(version string) *resource.Resource {
	of, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "consort"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithProcessPID(), resource.WithProcessExecutableName(), resource.WithProcessRuntimeName(), resource.WithProcessRuntimeVersion(),
		resource.WithFromEnv())
	if err != nil { // the other attributes are set
		w.log.wrong("OTEL_RESOURCE_ATTRIBUTES: expected NAME=VALUE, separated by commas: " + err.Error())
	}
	return of
}

func (w *Exports) startTraces(of *resource.Resource, shown bool) error {
	options := []trace.TracerProviderOption{trace.WithResource(of)}
	if w.traces != "" {
		exporter, err := w.spanExporter()
		if err != nil {
			return exit.Usagef("exporting traces: %w", err)
		}
		options = append(options, trace.WithBatcher(endingExporter{exporter, w.ended}, w.batches...))
	}
	if shown {
		w.Spans = &Recorder{}
		options = append(options, trace.WithSpanProcessor(w.Spans))
		if w.traces == "" { // OTEL_TRACES_SAMPLER is for exported traces
			options = append(options, trace.WithSampler(trace.AlwaysSample()))
		}
	}
	if len(options) > 1 {
		w.tracers = trace.NewTracerProvider(options...)
	}
	return nil
}

func (w *Exports) spanExporter() (trace.SpanExporter, error) {
	switch {
	case w.traces == overGRPC && w.plainTraces:
		return otlptracegrpc.New(context.Background(), otlptracegrpc.WithInsecure())
	case w.traces == overGRPC:
		return otlptracegrpc.New(context.Background())
	case w.plainTraces:
		return otlptracehttp.New(context.Background(), otlptracehttp.WithInsecure())
	}
	return otlptracehttp.New(context.Background())
}

func (w *Exports) startMetrics(of *resource.Resource, scraped bool) error {
	options := []metric.Option{metric.WithResource(of)}
	if w.metrics != "" {
		exporter, err := w.metricExporter()
		if err != nil {
			return exit.Usagef("exporting metrics: %w", err)
		}
		w.pushed = &pushedMetrics{exporter: exporter, reader: metric.NewPeriodicReader(exporter)}
		options = append(options, metric.WithReader(w.pushed.reader))
	}
	if scraped {
		registry := prometheus.NewRegistry()
		reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
			otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			return err
		}
		options = append(options, metric.WithReader(reader))
		w.Scrape = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
			ErrorLog: w.log, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 8, Timeout: 10 * time.Second,
		})
	}
	if len(options) > 1 {
		w.meters = metric.NewMeterProvider(options...)
	}
	return nil
}

func (w *Exports) metricExporter() (metric.Exporter, error) {
	switch {
	case w.metrics == overGRPC && w.plainMetrics:
		return otlpmetricgrpc.New(context.Background(), otlpmetricgrpc.WithInsecure())
	case w.metrics == overGRPC:
		return otlpmetricgrpc.New(context.Background())
	case w.plainMetrics:
		return otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithInsecure())
	}
	return otlpmetrichttp.New(context.Background())
}

// Close exports the remaining data, for FlushTime at most, and ends everything that Start
// started.
func (w *Exports) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), FlushTime)
	defer cancel()
	defer context.AfterFunc(ctx, w.end)()
	defer w.log.close()
	var both sync.WaitGroup
	shut := func(down func(context.Context) error) {
		both.Go(func() {
			// Cancelled exports get a moment to notice.
			patient, over := context.WithTimeout(context.Background(), FlushTime+time.Second)
			defer over()
			if err := down(patient); err != nil {
				w.log.Handle(err)
			}
		})
	}
	if w.tracers != nil {
		shut(w.tracers.Shutdown)
	}
	if w.meters != nil {
		shut(func(context.Context) error {
			w.pushed.wait()
			return w.meters.Shutdown(ctx)
		})
	}
	both.Wait()
}

// pushedMetrics are the metrics that go to a collector.
type pushedMetrics struct {
	exporter metric.Exporter
	reader   *metric.PeriodicReader
	early    sync.WaitGroup // exports begun by collect
}

// wait waits for the exports that collect began.
func (m *pushedMetrics) wait() {
	if m != nil {
		m.early.Wait()
	}
}

// Collect reads the metrics and begins to export them, without waiting: the metrics of
// ensembles can be read only until the roster is closed. Close waits for the export
// within the FlushTime of all exports.
func (w *Exports) Collect() {
	if w == nil || w.pushed == nil {
		return
	}
	var read metricdata.ResourceMetrics
	if err := w.pushed.reader.Collect(w.ended, &read); err != nil {
		w.log.Handle(err)
	}
	w.pushed.early.Go(func() {
		if err := w.pushed.exporter.Export(w.ended, &read); err != nil && w.ended.Err() == nil { // once ended, the last export reports the failure
			w.log.Handle(err)
		}
	})
}

// endingExporter is an exporter whose exports also end with a context. The SDK bounds its
// last export only by its own timeout of half a minute.
type endingExporter struct {
	trace.SpanExporter
	ended context.Context
}

func (e endingExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ended, func() { cancel(errTooLate) })()
	return e.SpanExporter.ExportSpans(ctx, spans)
}

var errTooLate = errors.New("the collector did not accept the spans before the command ended")
