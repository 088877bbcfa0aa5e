// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// tracing returns a telemetry, its ended spans, and a context with a span of a caller.
func tracing(t *testing.T) (*telemetry.Telemetry, *tracetest.SpanRecorder, context.Context) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	instruments, err := telemetry.New(&telemetry.Options{Tracers: provider})
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := provider.Tracer("test").Start(t.Context(), "turn")
	return instruments, spans, telemetry.WithConversation(ctx, "K7")
}

// seen are the contexts that a source was given, by step.
type seen struct {
	ensemble.Source
	mu       sync.Mutex
	contexts map[string]context.Context
}

func seenBy(source ensemble.Source) *seen {
	return &seen{Source: source, contexts: make(map[string]context.Context)}
}

func (s *seen) note(step string, ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contexts[step] = ctx
}

func (s *seen) at(step string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contexts[step]
}

func (s *seen) Open(ctx context.Context) (ensemble.Connection, error) {
	s.note("open", ctx)
	connection, err := s.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return seenConnection{connection, s}, nil
}

type seenConnection struct {
	ensemble.Connection
	seen *seen
}

func (c seenConnection) List(ctx context.Context) (ensemble.Listing, error) {
	c.seen.note("list", ctx)
	return c.Connection.List(ctx)
}

func (c seenConnection) Ping(ctx context.Context) error {
	c.seen.note("ping", ctx)
	return nil
}

func spanOf(ctx context.Context) trace.SpanContext { return trace.SpanContextFromContext(ctx) }

// An attempt to connect is a separate trace that names the ensemble and is linked to the
// span of the first caller; its requests are in that trace.
func TestConnectIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instruments, spans, turn := tracing(t)
		source := seenBy(ensembletest.NewSource(ensembletest.Returns("a", ""), ensembletest.Returns("b", "")))
		e := ensemble.New("e", source, &ensemble.Options{Telemetry: instruments, KeepAlive: time.Minute, Deny: []string{"b"}})
		defer e.Close(context.Background())
		if err := e.Connect(turn); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ended := spans.Ended()
		if len(ended) != 1 {
			t.Fatalf("%d spans", len(ended))
		}
		span := ended[0]
		if span.Name() != "connect e" || span.Parent().IsValid() || span.SpanContext().TraceID() == spanOf(turn).TraceID() {
			t.Errorf("the span is %s, its parent %v", span.Name(), span.Parent())
		}
		if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != spanOf(turn).SpanID() {
			t.Errorf("its links are %v", links)
		}
		for _, want := range []attribute.KeyValue{
			attribute.String("consort.ensemble", "e"), attribute.Int("consort.tools.count", 1), attribute.Int("consort.tools.aside", 1),
		} {
			if !slices.Contains(span.Attributes(), want) {
				t.Errorf("it lacks %v: %v", want, span.Attributes())
			}
		}
		for _, step := range []string{"open", "list"} {
			ctx := source.at(step)
			if spanOf(ctx).SpanID() != span.SpanContext().SpanID() || telemetry.From(ctx) != instruments || telemetry.Conversation(ctx) != "" {
				t.Errorf("%s has the span %v, the telemetry %p and the conversation %q", step, spanOf(ctx), telemetry.From(ctx), telemetry.Conversation(ctx))
			}
		}
		time.Sleep(2 * time.Minute) // Later requests belong neither to the attempt nor to a turn.
		if ping := source.at("ping"); spanOf(ping).IsValid() || telemetry.From(ping) != instruments {
			t.Errorf("a ping has the span %v", spanOf(ping))
		}
	})
}

// A failed attempt is marked, also when the source does not return.
func TestFailedConnectIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instruments, spans, turn := tracing(t)
		source := ensembletest.NewSource()
		e := ensemble.New("e", source, &ensemble.Options{Telemetry: instruments, Redact: func(string) string { return "[gone]" }})
		expect := func(code invoker.Code) {
			t.Helper()
			_ = e.Connect(turn)
			synctest.Wait()
			ended := spans.Ended()
			span := ended[len(ended)-1]
			if !slices.Contains(span.Attributes(), attribute.String("error.type", string(code))) ||
				span.Status().Code != codes.Error || span.Status().Description != "[gone]" {
				t.Errorf("want %s: %v %v", code, span.Status(), span.Attributes())
			}
		}
		source.Fail(ensembletest.Open, 1, errors.New("nobody there"))
		expect(invoker.Unavailable)
		source.Fail(ensembletest.Open, 1, &invoker.Failure{Code: invoker.Unauthorized})
		expect(invoker.Unauthorized)
		source.Fail(ensembletest.List, 1, errors.New("out of order"))
		expect(invoker.Unavailable)
		release := source.Hang(ensembletest.Open, true)
		expect(invoker.Timeout)
		if n := len(spans.Ended()); n != 4 {
			t.Errorf("%d spans", n)
		}
		release()
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// An attempt that is broken off has ended, and as such.
func TestConnectThatIsBrokenOffIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instruments, spans, turn := tracing(t)
		source := ensembletest.NewSource()
		defer source.Hang(ensembletest.Open, false)()
		e := ensemble.New("e", source, &ensemble.Options{Telemetry: instruments})
		go e.Connect(turn)
		synctest.Wait()
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if ended := spans.Ended(); len(ended) != 1 || !slices.Contains(ended[0].Attributes(), attribute.String("error.type", string(invoker.Canceled))) {
			t.Errorf("the spans are %v", ended)
		}
	})
}

// Calls and listings use the telemetry of their context, or else that of the ensemble;
// the connection prefers that of the ensemble.
func TestWhoseTelemetry(t *testing.T) {
	own, _, _ := tracing(t)
	theirs, _, turn := tracing(t)
	with := telemetry.With(turn, theirs)
	for _, c := range []struct {
		options           *telemetry.Telemetry
		ctx               context.Context
		opened, call, ask *telemetry.Telemetry
	}{
		{own, with, own, theirs, theirs},
		{own, turn, own, own, own},
		{nil, with, theirs, theirs, theirs},
		{nil, turn, nil, nil, nil},
	} {
		var called context.Context
		fake := ensembletest.NewSource(ensembletest.NewTool("a", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			called = ctx
			return invoker.Output{}, nil
		}))
		source := seenBy(fake)
		e := ensemble.New("e", source, &ensemble.Options{Telemetry: c.options})
		tools, err := e.Tools(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tools[0].Invoke(c.ctx, nil); err != nil {
			t.Fatal(err)
		}
		if telemetry.From(source.at("open")) != c.opened || telemetry.From(called) != c.call {
			t.Errorf("opened with %p, called with %p; want %p and %p", telemetry.From(source.at("open")), telemetry.From(called), c.opened, c.call)
		}
		if spanOf(called).SpanID() != spanOf(turn).SpanID() {
			t.Error("a call is not in the trace of who calls")
		}
		if err := e.Refresh(c.ctx); err != nil {
			t.Fatal(err)
		}
		// A listing anew is in the trace of who waits for it.
		if list := source.at("list"); telemetry.From(list) != c.ask || spanOf(list).SpanID() != spanOf(turn).SpanID() {
			t.Errorf("listed anew with %p in %v", telemetry.From(list), spanOf(list))
		}
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// measured reads the gauges, as name or name/state.
func measured(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	values := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, point := range sum.DataPoints {
				name := m.Name
				if state, ok := point.Attributes.Value("consort.ensemble.state"); ok {
					name += "/" + state.AsString()
				}
				values[name] = point.Value
			}
		}
	}
	return values
}

// The gauges report the state of an ensemble until it is closed; those of one name are
// added up.
func TestGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		instruments, err := telemetry.New(&telemetry.Options{Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
		if err != nil {
			t.Fatal(err)
		}
		wait := make(chan struct{})
		source := ensembletest.NewSource(ensembletest.Returns("x", ""), ensembletest.NewTool("a", func(context.Context, *invoker.Call) (invoker.Output, error) {
			<-wait
			return invoker.Output{}, nil
		}))
		options := &ensemble.Options{Telemetry: instruments, Deny: []string{"x"}}
		e, other := ensemble.New("e", source, options), ensemble.New("e", ensembletest.NewSource(ensembletest.Returns("b", "")), options)
		expect := func(want map[string]int64) {
			t.Helper()
			got := measured(t, reader)
			for name, value := range want {
				if value, name := value, "consort.ensemble."+name; got[name] != value {
					t.Errorf("%s is %d, want %d", name, got[name], value)
				}
			}
		}
		expect(map[string]int64{"states/idle": 2, "states/ready": 0, "calls": 0, "tools": 0})
		go toolOf(t, e, "a").Invoke(t.Context(), nil)
		synctest.Wait()
		expect(map[string]int64{"states/idle": 1, "states/ready": 1, "calls": 1, "tools": 1, "tools.aside": 1, "restarts": 0})
		close(wait)
		synctest.Wait()
		source.Lose(errors.New("gone"))
		synctest.Wait()
		expect(map[string]int64{"states/lost": 1, "calls": 0})
		for _, one := range []*ensemble.Ensemble{e, other} {
			if err := one.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		expect(map[string]int64{"states/lost": 0, "states/ready": 2, "restarts": 1, "tools": 2})
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(map[string]int64{"states/ready": 1, "states/closed": 0, "tools": 1})
		if err := other.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := measured(t, reader); len(left) != 0 {
			t.Errorf("after both were closed there is %v", left)
		}
	})
}
