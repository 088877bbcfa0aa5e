// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// seen is a span that has ended, as it can be told by another process.
type seen struct {
	Name, Kind, Trace, Span, Parent, Status, Said string
	Remote                                        bool // the parent is another process's
	Links                                         []string
	Attributes                                    map[string]any
}

// watcher keeps the spans and measurements of one side.
type watcher struct {
	*telemetry.Telemetry
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader

	mu   sync.Mutex
	open int
	seen []seen
	over chan struct{} // holds one when a span has ended
	out  io.Writer     // gets them too, if it is not nil
}

func watch(options telemetry.Options) *watcher {
	w := &watcher{reader: sdkmetric.NewManualReader(), over: make(chan struct{}, 1)}
	w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w))
	options.Tracers, options.Meters = w.tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	t, err := telemetry.New(&options)
	if err != nil {
		panic(err)
	}
	w.Telemetry = t
	return w
}

// root begins the work that a test is about.
func (w *watcher) root(t *testing.T) (context.Context, trace.Span) {
	return w.tracers.Tracer("test").Start(telemetry.With(within(t), w.Telemetry), "root")
}

func (w *watcher) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
}

func (w *watcher) OnEnd(s sdktrace.ReadOnlySpan) {
	one := seen{
		Name: s.Name(), Kind: s.SpanKind().String(), Trace: s.SpanContext().TraceID().String(), Span: s.SpanContext().SpanID().String(),
		Remote: s.Parent().IsRemote(), Attributes: map[string]any{}, Said: s.Status().Description,
	}
	if s.Parent().IsValid() {
		one.Parent = s.Parent().SpanID().String()
	}
	if s.Status().Code == codes.Error {
		one.Status = "error"
	}
	for _, a := range s.Attributes() {
		one.Attributes[string(a.Key)] = a.Value.AsInterface()
	}
	for _, l := range s.Links() {
		one.Links = append(one.Links, l.SpanContext.SpanID().String())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	select {
	case w.over <- struct{}{}:
	default:
	}
	w.seen = append(w.seen, one)
	if w.out != nil {
		_ = json.NewEncoder(w.out).Encode(one)
	}
}

func (w *watcher) Shutdown(context.Context) error   { return nil }
func (w *watcher) ForceFlush(context.Context) error { return nil }

// all returns the spans; each one that began must end.
func (w *watcher) all(t *testing.T) []seen {
	t.Helper()
	late := time.After(patience)
	for {
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		if open == 0 {
			return w.soFar()
		}
		select {
		case <-w.over:
		case <-late:
			t.Errorf("%d spans have not ended", open)
			return w.soFar()
		}
	}
}

// soFar returns the spans that have ended.
func (w *watcher) soFar() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// named returns the spans of a name and kind.
func named(spans []seen, kind, name string) (found []seen) {
	for _, s := range spans {
		if s.Name == name && s.Kind == kind {
			found = append(found, s)
		}
	}
	return found
}

// theSpan returns the one span of a name and kind.
func theSpan(t *testing.T, spans []seen, kind, name string) seen {
	t.Helper()
	found := named(spans, kind, name)
	if len(found) != 1 {
		t.Fatalf("%d %s spans %q, want 1, among %s", len(found), kind, name, namesOf(spans))
	}
	return found[0]
}

func namesOf(spans []seen) string {
	var names []string
	for _, s := range spans {
		names = append(names, s.Kind+" "+s.Name)
	}
	return strings.Join(names, ", ")
}

// wants compares attributes; nil is one that must not be there.
func (s seen) wants(t *testing.T, want map[string]any) {
	t.Helper()
	for key, value := range want {
		if got := s.Attributes[key]; got != value && !(isNumber(got) && number(got) == number(value)) {
			t.Errorf("%s %s: %s is %v, want %v", s.Kind, s.Name, key, got, value)
		}
	}
}

func isNumber(v any) bool { return number(v) >= 0 }

// number makes what JSON read and what was never JSON the same.
func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case int:
		return float64(n)
	case float64:
		return n
	}
	return -1
}

// sessions returns the attributes of the durations that were measured.
func (w *watcher) measured(t *testing.T, name string) (sets []map[string]string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == name {
				for _, point := range h.DataPoints {
					set := map[string]string{}
					for _, a := range point.Attributes.ToSlice() {
						set[string(a.Key)] = emitted(a.Value)
					}
					for range point.Count {
						sets = append(sets, set)
					}
				}
			}
		}
	}
	return sets
}

func emitted(v attribute.Value) string { return v.String() }

// traceparent reads the ids of a W3C traceparent.
func traceparent(text string) (traceID, spanID string) {
	parts := strings.Split(text, "-")
	if len(parts) != 4 {
		return "", ""
	}
	return parts[1], parts[2]
}
