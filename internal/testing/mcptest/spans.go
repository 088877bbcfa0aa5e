// SPDX-License-Identifier: Apache-2.0

package mcptest

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

// Span is a span that has ended, in a form that one process can send to another.
type Span struct {
	Name, Kind, Trace, ID, Parent, Status, Message string
	Remote                                         bool // the parent is another process's
	Links                                          []string
	Attributes                                     map[string]any
}

// Recorder keeps the spans and measurements of one side.
type Recorder struct {
	*telemetry.Telemetry
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader

	mu     sync.Mutex
	open   int
	spans  []Span
	ended  chan struct{} // holds a value when a span has ended
	Output io.Writer     // also gets the spans, as JSON; may be nil
}

// RecordSpans returns a recorder with its own telemetry.
func RecordSpans(options telemetry.Options) *Recorder {
	w := &Recorder{reader: sdkmetric.NewManualReader(), ended: make(chan struct{}, 1)}
	w.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w))
	options.Tracers, options.Meters = w.tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	t, err := telemetry.New(&options)
	if err != nil {
		panic(err)
	}
	w.Telemetry = t
	return w
}

// StartRoot starts the span of the work that a test is about.
func (r *Recorder) StartRoot(t *testing.T) (context.Context, trace.Span) {
	return r.tracers.Tracer("test").Start(telemetry.With(Within(t), r.Telemetry), "root")
}

// OnStart implements [sdktrace.SpanProcessor].
func (r *Recorder) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
}

// OnEnd implements [sdktrace.SpanProcessor].
func (r *Recorder) OnEnd(s sdktrace.ReadOnlySpan) {
	one := Span{
		Name: s.Name(), Kind: s.SpanKind().String(), Trace: s.SpanContext().TraceID().String(), ID: s.SpanContext().SpanID().String(),
		Remote: s.Parent().IsRemote(), Attributes: map[string]any{}, Message: s.Status().Description,
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	select {
	case r.ended <- struct{}{}:
	default:
	}
	r.spans = append(r.spans, one)
	if r.Output != nil {
		_ = json.NewEncoder(r.Output).Encode(one)
	}
}

// Shutdown implements [sdktrace.SpanProcessor].
func (r *Recorder) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (r *Recorder) ForceFlush(context.Context) error { return nil }

// Spans waits until all spans have ended, and returns them.
func (r *Recorder) Spans(t *testing.T) []Span {
	t.Helper()
	late := time.After(Patience)
	for {
		r.mu.Lock()
		open := r.open
		r.mu.Unlock()
		if open == 0 {
			return r.SpansSoFar()
		}
		select {
		case <-r.ended:
		case <-late:
			t.Errorf("%d spans have not ended", open)
			return r.SpansSoFar()
		}
	}
}

// SpansSoFar returns the spans that have ended.
func (r *Recorder) SpansSoFar() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// SpansNamed returns the spans of a name and kind.
func SpansNamed(spans []Span, kind, name string) (found []Span) {
	for _, s := range spans {
		if s.Name == name && s.Kind == kind {
			found = append(found, s)
		}
	}
	return found
}

// OneSpan returns the one span of a name and kind.
func OneSpan(t *testing.T, spans []Span, kind, name string) Span {
	t.Helper()
	found := SpansNamed(spans, kind, name)
	if len(found) != 1 {
		t.Fatalf("%d %s spans %q, want 1, among %s", len(found), kind, name, SpanNames(spans))
	}
	return found[0]
}

// SpanNames lists spans for a message.
func SpanNames(spans []Span) string {
	var names []string
	for _, s := range spans {
		names = append(names, s.Kind+" "+s.Name)
	}
	return strings.Join(names, ", ")
}

// Want compares attributes; nil is the value of one that must not be there.
func (s Span) Want(t *testing.T, want map[string]any) {
	t.Helper()
	for key, value := range want {
		if got := s.Attributes[key]; got != value && !(isNumber(got) && Number(got) == Number(value)) {
			t.Errorf("%s %s: %s is %v, want %v", s.Kind, s.Name, key, got, value)
		}
	}
}

func isNumber(v any) bool { return Number(v) >= 0 }

// Number makes what JSON read and what was never JSON the same.
func Number(v any) float64 {
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

// Durations returns the attributes of the measurements of a histogram.
func (r *Recorder) Durations(t *testing.T, name string) (sets []map[string]string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
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

// ParseTraceparent returns the ids of a W3C traceparent.
func ParseTraceparent(text string) (traceID, spanID string) {
	parts := strings.Split(text, "-")
	if len(parts) != 4 {
		return "", ""
	}
	return parts[1], parts[2]
}

// ChildOf returns the one span of the other side below a span.
func ChildOf(t *testing.T, spans []Span, parent Span) Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s Span) bool { return s.Parent == parent.ID })
	if i < 0 {
		t.Fatalf("nothing is below %q, among %s", parent.Name, SpanNames(spans))
	}
	return spans[i]
}
