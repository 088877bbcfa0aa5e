// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// seen is a Telemetry whose spans a test looks at.
type seen struct {
	*telemetry.Telemetry
	spans   *tracetest.SpanRecorder
	metrics *sdkmetric.ManualReader
}

func newSeen(t testing.TB, opts telemetry.Options) *seen {
	t.Helper()
	s := &seen{spans: tracetest.NewSpanRecorder(), metrics: sdkmetric.NewManualReader()}
	opts.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	opts.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.metrics))
	var err error
	if s.Telemetry, err = telemetry.New(&opts); err != nil {
		t.Fatal(err)
	}
	return s
}

// tree writes the spans down, each with why it failed, below its parent. A span
// that has not ended fails the test.
func (s *seen) tree(t testing.TB) string {
	t.Helper()
	ended := map[trace.SpanID]bool{}
	for _, span := range s.spans.Ended() {
		if ended[span.SpanContext().SpanID()] {
			t.Errorf("the span %q ended twice", span.Name())
		}
		ended[span.SpanContext().SpanID()] = true
	}
	var text strings.Builder
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, span := range s.spans.Started() {
			if span.Parent().SpanID() != parent || span.Name() == "connect local" { // which is a trace of its own
				continue
			}
			if !ended[span.SpanContext().SpanID()] {
				t.Errorf("the span %q has not ended", span.Name())
			}
			line := indent + span.Name()
			for _, key := range []string{"consort.turn.reason", "error.type"} {
				if value := attributeOf(span, key); value != "" {
					line += " " + value
				}
			}
			if (attributeOf(span, "error.type") != "") != (span.Status().Code == codes.Error) {
				t.Errorf("the span %q has the status %v and the error type %q", span.Name(), span.Status(), attributeOf(span, "error.type"))
			}
			fmt.Fprintln(&text, line)
			write(span.SpanContext().SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return text.String()
}

// find returns the nth span of a name, from 0.
func (s *seen) find(t testing.TB, name string, n int) sdktrace.ReadOnlySpan {
	t.Helper()
	for _, span := range s.spans.Started() {
		if span.Name() != name {
			continue
		}
		if n == 0 {
			return span
		}
		n--
	}
	t.Fatalf("there is no span %q", name)
	return nil
}

// attributeOf returns an attribute as text; the last one of a key counts.
func attributeOf(span sdktrace.ReadOnlySpan, key string) string {
	text := ""
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			text = a.Value.String()
		}
	}
	return text
}

func wantTree(t testing.TB, s *seen, want ...string) {
	t.Helper()
	if got := s.tree(t); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("the trace is\n%s, want\n%s", got, strings.Join(want, "\n"))
	}
}

func wantAttributes(t testing.TB, span sdktrace.ReadOnlySpan, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := attributeOf(span, key); got != value {
			t.Errorf("%q has %s = %q, want %q", span.Name(), key, got, value)
		}
	}
}

// fieldsOf are the fields of a log line on that context.
func fieldsOf(ctx context.Context) map[string]string {
	fields := map[string]string{}
	for _, field := range telemetry.Fields(ctx) {
		fields[field.Key] = field.String
		if stringer, ok := field.Interface.(fmt.Stringer); ok {
			fields[field.Key] = stringer.String()
		}
	}
	return fields
}

// contextual is a script that notes the context of each exchange.
type contextual struct {
	*conversetest.Script
	on func(context.Context)
}

func (c contextual) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	c.on(ctx)
	return c.Script.Exchange(ctx, request)
}

// The calls that a tool makes are within its span, which lasts until it has a result, and their
// records name its invocation.
func TestTraceOfInnerCalls(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	parents := map[string]string{}
	records := sinkFunc(func(_ context.Context, r *audit.Record) error {
		parents[r.Tool+" "+string(r.Arguments)] = r.Parent
		return nil
	})
	talk := converse.New(conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`), call("act", `{"n":9}`)}}, conversetest.Line{Text: "Done."},
	), newRoster(t, plan("act:1", "act:2 none:3"), (&acts{}).tool("act")), &converse.Options{
		Telemetry: s.Telemetry, Audit: audit.New(records, nil), Limits: converse.Limits{Parallel: 1},
	})
	play(t, talk, "Go.")
	wantTree(t, s,
		"invoke_agent answered",
		"  chat script",
		"  execute_tool local__plan",
		"    execute_tool local__act",
		"    execute_tool local__act",
		"    execute_tool _OTHER TOOL_NOT_FOUND",
		"  execute_tool local__act",
		"  chat script",
	)
	of := ""
	for _, c := range talk.History() {
		if i, ok := c.(canister.Invocation); ok && i.Name == "local__plan" {
			of = i.ID
		}
	}
	want := map[string]string{"plan {}": "", `act {"n":9}`: "", `act {"n":1}`: of, `act {"n":2}`: of, `local__none {"n":3}`: of}
	if !maps.Equal(parents, want) {
		t.Errorf("the records name %q, not %q", parents, want)
	}
}

// A call that waits for the answer about a call of its own ends its span with the work.
func TestTraceOfWaitingInnerCalls(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	talk := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}),
		newRoster(t, plan("echo:1 act:2"), echo("echo"), (&acts{}).tool("act")),
		&converse.Options{ID: "talk", Log: history.NewMemory(), Telemetry: s.Telemetry, Limits: converse.Limits{Parallel: 1}, Approve: defers})
	play(t, talk, "Go.")
	wantTree(t, s,
		"invoke_agent waiting",
		"  chat script",
		"  execute_tool local__plan",
		"    execute_tool local__echo",
	)
}

// One turn is one trace: who is whose parent, and what is known of each.
func TestTraceOfATurn(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	var modelSees, toolSees []map[string]string
	look := fn("look", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		toolSees = append(toolSees, fieldsOf(ctx))
		return invoker.Output{Content: canister.Texts("rain")}, nil
	})
	look.Definition().Description = "Look out of the window."
	breaks := fn("break", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.NotFound, "There is no window.")
	})
	script := conversetest.NewScript(
		conversetest.Line{Text: "I look.", Usage: &canister.Usage{Input: 10, Cached: 4, CacheWritten: 2, Output: 5, Reasoning: 1}, Calls: []conversetest.Call{
			call("look", `{}`), call("break", `{}`), {Name: "local__" + strings.Repeat("x", 300), Arguments: `{}`},
		}},
		conversetest.Line{Text: "It rains.", Usage: &canister.Usage{Input: 20, Cached: 10, Output: 7}},
	)
	talk := converse.New(contextual{script, func(ctx context.Context) { modelSees = append(modelSees, fieldsOf(ctx)) }},
		newRoster(t, look, breaks), &converse.Options{ID: "talk-1", Telemetry: s.Telemetry, Limits: converse.Limits{Parallel: 1}})
	play(t, talk, "Weather?")
	wantTree(t, s,
		"invoke_agent answered",
		"  chat script",
		"  execute_tool local__look",
		"  execute_tool local__break NOT_FOUND",
		"  execute_tool _OTHER TOOL_NOT_FOUND",
		"  chat script",
	)
	agent := s.find(t, "invoke_agent", 0)
	wantAttributes(t, agent, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "talk-1", "gen_ai.provider.name": "conversetest", "gen_ai.request.model": "script",
		"consort.turn.exchanges": "2", "consort.turn.invocations": "3", "gen_ai.response.finish_reasons": `["stop"]`,
		"gen_ai.usage.input_tokens": "30", "gen_ai.usage.cache_read.input_tokens": "14",
		"gen_ai.usage.cache_creation.input_tokens": "2", "gen_ai.usage.output_tokens": "12",
	})
	wantAttributes(t, s.find(t, "chat script", 0), map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "talk-1", "gen_ai.provider.name": "conversetest", "gen_ai.request.model": "script",
		"gen_ai.response.model": "script", "gen_ai.request.stream": "true", "gen_ai.response.finish_reasons": `["tool_call"]`,
		"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "5", "gen_ai.usage.reasoning.output_tokens": "1",
	})
	wantAttributes(t, s.find(t, "execute_tool local__look", 0), map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "talk-1", "gen_ai.tool.name": "local__look", "gen_ai.tool.type": "function",
		"gen_ai.tool.description": "Look out of the window.", "gen_ai.tool.call.id": talk.History()[2].Header().ID, "consort.ensemble": "local",
		"gen_ai.tool.call.arguments": "", "gen_ai.tool.call.result": "",
	})
	if got := s.find(t, "execute_tool local__break", 0).Status().Description; got != "There is no window." {
		t.Errorf("the failed call says %q", got)
	}
	if got := attributeOf(s.find(t, "execute_tool _OTHER", 0), "gen_ai.tool.name"); !strings.HasPrefix(got, "local__xxx") || len(got) > 290 {
		t.Errorf("the tool that there is not is called %q", got)
	}
	of := func(span sdktrace.ReadOnlySpan) map[string]string {
		return map[string]string{
			"trace_id": span.SpanContext().TraceID().String(), "span_id": span.SpanContext().SpanID().String(), "conversation_id": "talk-1",
		}
	}
	equal(t, "the model's contexts", modelSees, []map[string]string{of(s.find(t, "chat script", 0)), of(s.find(t, "chat script", 1))})
	equal(t, "the tool's context", toolSees, []map[string]string{of(s.find(t, "execute_tool local__look", 0))})
	said := talk.History()[1].Header().Metadata["io.github.consort-go/trace"]
	equal(t, "the trace in the log", string(said), `"`+agent.SpanContext().TraceID().String()+`"`)
	names := s.measuredNames(t, "gen_ai.execute_tool.duration", "gen_ai.tool.name")
	equal(t, "the names that are measured", names, map[string]bool{"local__look": true, "local__break": true, "_OTHER": true})
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// measuredNames returns the values that an attribute of a histogram has.
func (s *seen) measuredNames(t testing.TB, histogram, key string) map[string]bool {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Name != histogram {
				continue
			}
			for _, point := range metric.Data.(metricdata.Histogram[float64]).DataPoints {
				value, _ := point.Attributes.Value(attribute.Key(key))
				values[value.String()] = true
			}
		}
	}
	return values
}

// A turn is a child of the span that its context carries, whose Telemetry it
// takes if it has none; Add is no span; a history that a process left open is
// answered with spans.
func TestTraceBelongsToItsContext(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	ctx := telemetry.With(t.Context(), s.Telemetry)
	ctx, outer := telemetry.StartConnect(ctx, "outer")
	script := conversetest.NewScript(conversetest.Line{Text: "Hello."})
	talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{History: []canister.Canister{
		canister.User{Head: canister.Head{ID: "1"}, Content: canister.Texts("go")},
		canister.Assistant{Head: canister.Head{ID: "2"}},
		canister.Invocation{Head: canister.Head{ID: "3"}, Message: "2", CallID: "c", Name: "local__a", Arguments: "{}"},
	}})
	if _, err := talk.Ask(ctx, canister.Text("again")); err != nil {
		t.Fatal(err)
	}
	if err := talk.Add(ctx, canister.User{Content: canister.Texts("nothing")}); err != nil {
		t.Fatal(err)
	}
	outer.End(0, 0, nil)
	wantTree(t, s, "connect outer", "  invoke_agent answered", "    execute_tool _OTHER CANCELED", "    chat script")
	wantAttributes(t, s.find(t, "execute_tool _OTHER", 0), map[string]string{"gen_ai.tool.name": "local__a", "gen_ai.tool.call.id": "3"})
}

// Step is a span for each step, with what that step used.
func TestTraceOfSteps(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}, Usage: usage(10, 1)},
		conversetest.Line{Text: "Hello.", Usage: usage(20, 2)},
	)
	talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{Telemetry: s.Telemetry})
	if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("go")}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		for _, err := range talk.Step(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	wantTree(t, s,
		"invoke_agent", "  chat script",
		"invoke_agent", "  execute_tool local__a",
		"invoke_agent", "  chat script",
		"invoke_agent answered")
	for i, want := range []string{"10 1 0", "0 0 1", "20 1 0", "0 0 0"} {
		step := s.find(t, "invoke_agent", i)
		got := attributeOf(step, "gen_ai.usage.input_tokens") + " " + attributeOf(step,
			"consort.turn.exchanges") + " " + attributeOf(step, "consort.turn.invocations")
		if got != want {
			t.Errorf("step %d used %s, want %s", i, got, want)
		}
	}
}

// Whichever way a piece of work ends, so do its spans, and say how.
func TestEverySpanEnds(t *testing.T) {
	busy := &converse.ModelError{Message: "too many", Status: 429, Retryable: true}
	asks := conversetest.Line{Text: "I call.", Calls: []conversetest.Call{call("a", "{}")}}
	calls := func(tool string) conversetest.Line {
		return conversetest.Line{Calls: []conversetest.Call{call(tool, "{}")}}
	}
	never := make(chan struct{})
	tests := []struct {
		name  string
		lines []conversetest.Line
		opts  converse.Options
		on    func(event converse.Event, cancel context.CancelFunc) bool // false leaves the loop
		want  []string
	}{
		{name: "the model fails", lines: []conversetest.Line{{Err: busy}},
			want: []string{"invoke_agent 429", "  chat script 429"}},
		{name: "the model fails after a call", lines: []conversetest.Line{asks, {Err: errors.New("odd")}},
			want: []string{"invoke_agent INTERNAL", "  chat script", "  execute_tool local__a", "  chat script INTERNAL"}},
		{name: "the model cannot be reached", lines: []conversetest.Line{{Err: &converse.ModelError{Message: "no route", Err: errors.New("x")}}},
			want: []string{"invoke_agent UNAVAILABLE", "  chat script UNAVAILABLE"}},
		{name: "the stream ends with an error", lines: []conversetest.Line{{Err: &converse.ModelError{Message: "no", Status: 200, Code: "overloaded"}}},
			want: []string{"invoke_agent EXECUTION_FAILED", "  chat script EXECUTION_FAILED"}},
		{name: "the model is silent", lines: []conversetest.Line{{Err: &converse.ModelError{
			Message: "silence", Retryable: true, Err: context.DeadlineExceeded,
		}}},
			want: []string{"invoke_agent TIMEOUT", "  chat script TIMEOUT"}},
		{name: "leaving during an answer", lines: []conversetest.Line{{Text: "Hello.", Wait: never}}, on: leaveAt[converse.TextDelta],
			want: []string{"invoke_agent CANCELED", "  chat script CANCELED"}},
		{name: "leaving before the answer", lines: []conversetest.Line{{Text: "Hello."}}, on: leaveAt[converse.MessageStarted],
			want: []string{"invoke_agent CANCELED"}},
		{name: "leaving after the answer", lines: []conversetest.Line{asks}, on: leaveAt[converse.MessageCompleted],
			want: []string{"invoke_agent CANCELED", "  chat script", "  execute_tool local__a CANCELED"}},
		{name: "leaving during a call", lines: []conversetest.Line{calls("wait")}, on: leaveAt[converse.InvocationStarted],
			want: []string{"invoke_agent CANCELED", "  chat script", "  execute_tool local__wait CANCELED"}},
		{name: "leaving at the end", lines: []conversetest.Line{{Text: "Hello."}}, on: leaveAt[converse.TurnCompleted],
			want: []string{"invoke_agent answered", "  chat script"}},
		{name: "a panic at the start", lines: nil, on: panicAt[converse.TurnStarted],
			want: []string{"invoke_agent INTERNAL"}},
		{name: "a panic during an answer", lines: []conversetest.Line{{Text: "Hello."}}, on: panicAt[converse.TextDelta],
			want: []string{"invoke_agent INTERNAL", "  chat script INTERNAL"}},
		{name: "a panic during a call", lines: []conversetest.Line{calls("wait")}, on: panicAt[converse.InvocationStarted],
			want: []string{"invoke_agent INTERNAL", "  chat script", "  execute_tool local__wait CANCELED"}},
		{name: "a panic after a call", lines: []conversetest.Line{asks}, on: panicAt[converse.InvocationCompleted],
			want: []string{"invoke_agent INTERNAL", "  chat script", "  execute_tool local__a"}},
		{name: "a panic at the end", lines: []conversetest.Line{{Text: "Hello."}}, on: panicAt[converse.TurnCompleted],
			want: []string{"invoke_agent answered", "  chat script"}},
		{name: "the goroutine ends", lines: []conversetest.Line{{Text: "Hello."}},
			on: func(event converse.Event, _ context.CancelFunc) bool {
				if _, ok := event.(converse.TextDelta); ok {
					runtime.Goexit()
				}
				return true
			}, want: []string{"invoke_agent INTERNAL", "  chat script INTERNAL"}},
		{name: "cancelled during an answer", lines: []conversetest.Line{{Text: "Hello.", Wait: never}}, on: cancelAt[converse.TextDelta],
			want: []string{"invoke_agent CANCELED", "  chat script CANCELED"}},
		{name: "cancelled during a call", lines: []conversetest.Line{calls("wait")}, on: cancelAt[converse.InvocationStarted],
			want: []string{"invoke_agent CANCELED", "  chat script", "  execute_tool local__wait CANCELED"}},
		{name: "cancelled before the calls", lines: []conversetest.Line{asks}, on: cancelAt[converse.MessageCompleted],
			want: []string{"invoke_agent CANCELED", "  chat script", "  execute_tool local__a CANCELED"}},
		{name: "the time is up for an answer", lines: []conversetest.Line{{Text: "Hello.", Wait: never}},
			opts: converse.Options{Limits: converse.Limits{Time: time.Second}},
			want: []string{"invoke_agent time_limit", "  chat script TIMEOUT"}},
		{name: "the time is up for a call", lines: []conversetest.Line{calls("wait")}, opts: converse.Options{Limits: converse.Limits{Time: time.Second}},
			want: []string{"invoke_agent time_limit", "  chat script", "  execute_tool local__wait CANCELED"}},
		{name: "the limit of exchanges", lines: []conversetest.Line{asks}, opts: converse.Options{Limits: converse.Limits{Exchanges: 1}},
			want: []string{"invoke_agent exchange_limit", "  chat script", "  execute_tool local__a"}},
		{name: "the log fails at once", opts: converse.Options{ID: "talk", Log: failFrom(1)},
			want: []string{"invoke_agent INTERNAL"}},
		{name: "the log fails for an answer", lines: []conversetest.Line{asks}, opts: converse.Options{ID: "talk", Log: failFrom(2)},
			want: []string{"invoke_agent INTERNAL", "  chat script"}},
		{name: "the log fails for a result", lines: []conversetest.Line{asks}, opts: converse.Options{ID: "talk", Log: failFrom(4)},
			want: []string{"invoke_agent INTERNAL", "  chat script", "  execute_tool local__a"}},
		{name: "denied", lines: []conversetest.Line{asks, {Text: "Oh."}},
			opts: converse.Options{Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
				return converse.Deny("no"), nil
			}}, want: []string{"invoke_agent answered", "  chat script", "  execute_tool local__a DENIED", "  chat script"}},
		{name: "bad arguments", lines: []conversetest.Line{{Calls: []conversetest.Call{call("a", `{"x"`)}}, {Text: "Oh."}},
			want: []string{"invoke_agent answered", "  chat script", "  execute_tool local__a INVALID_ARGUMENTS", "  chat script"}},
		{name: "a tool panics", lines: []conversetest.Line{calls("panic"), {Text: "Oh."}},
			want: []string{"invoke_agent answered", "  chat script", "  execute_tool local__panic EXECUTION_FAILED", "  chat script"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSeen(t, telemetry.Options{})
				roster, err := ensemble.NewRoster(ensemble.Local("local", echo("a"), waiter("wait"),
					fn("panic", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("boo") })))
				if err != nil {
					t.Fatal(err)
				}
				for i := range test.lines {
					if test.lines[i].Wait != nil {
						test.lines[i].Wait = make(chan struct{}) // of the bubble
					}
				}
				opts := test.opts
				opts.Telemetry, opts.OwnRoster = s.Telemetry, true
				talk := converse.New(conversetest.NewScript(test.lines...), roster, &opts)
				playUntil(t, talk, test.on)
				wantTree(t, s, test.want...)
				if err := talk.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// playUntil sends a message on a goroutine of its own, and survives its panic.
func playUntil(t *testing.T, talk *converse.Conversation, on func(converse.Event, context.CancelFunc) bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done sync.WaitGroup
	done.Go(func() {
		defer func() { _ = recover() }()
		for event, err := range talk.Send(ctx, canister.Text("go")) {
			if err == nil && on != nil && !on(event, cancel) {
				break
			}
		}
	})
	done.Wait()
}

func leaveAt[E converse.Event](event converse.Event, _ context.CancelFunc) bool {
	_, there := event.(E)
	return !there
}

func cancelAt[E converse.Event](event converse.Event, cancel context.CancelFunc) bool {
	if _, there := event.(E); there {
		cancel()
	}
	return true
}

func panicAt[E converse.Event](event converse.Event, _ context.CancelFunc) bool {
	if _, there := event.(E); there {
		panic("the body of the loop")
	}
	return true
}

// failFrom is a log that fails from the nth append on.
func failFrom(n int) history.Log {
	return newWatchedLog(func(context.Context, []canister.Canister) error {
		if n--; n < 1 {
			return errors.New("the disk is full")
		}
		return nil
	})
}

// A model that breaks the rules, and one that panics.
func TestTraceOfABrokenModel(t *testing.T) {
	for want, broken := range map[string]model{
		"PROTOCOL": func(_ *converse.Request, yield func(converse.ModelEvent, error) bool) {
			yield(converse.Reply{Message: canister.Assistant{Usage: usage(3, 4)}}, nil)
		},
		"INTERNAL": func(*converse.Request, func(converse.ModelEvent, error) bool) { panic("boo") },
	} {
		s := newSeen(t, telemetry.Options{})
		playUntil(t, converse.New(broken, nil, &converse.Options{Telemetry: s.Telemetry}), nil)
		wantTree(t, s, "invoke_agent "+want, "  chat "+want)
		if want == "PROTOCOL" { // and was paid for
			wantAttributes(t, s.find(t, "invoke_agent", 0), map[string]string{"gen_ai.usage.output_tokens": "4"})
		}
		wantAttributes(t, s.find(t, "chat", 0), map[string]string{"gen_ai.provider.name": "unknown"})
	}
}

// Attempts that failed are noted, and how long the first piece took.
func TestTraceOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeen(t, telemetry.Options{})
		slow := model(func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
			yield(converse.Retry{Attempt: 1, Wait: time.Second, Err: &converse.ModelError{Message: "too many", Status: 429}}, nil)
			time.Sleep(2 * time.Second)
			yield(converse.Delta{Text: "Hello."}, nil)
			time.Sleep(2 * time.Second)
			yield(converse.Delta{Text: "There."}, nil)
			yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}}}, nil)
		})
		play(t, converse.New(slow, nil, &converse.Options{Telemetry: s.Telemetry}), "go")
		chat := s.find(t, "chat", 0)
		wantAttributes(t, chat, map[string]string{"gen_ai.response.time_to_first_chunk": "2"})
		if len(chat.Events()) != 1 || chat.Events()[0].Name != "consort.retry" {
			t.Fatalf("the events are %v", chat.Events())
		}
		noted := attribute.NewSet(chat.Events()[0].Attributes...)
		for key, want := range map[attribute.Key]string{"consort.retry.attempt": "1", "consort.retry.wait": "1", "error.type": "429"} {
			if value, _ := noted.Value(key); value.String() != want {
				t.Errorf("the retry has %s = %s, want %s", key, value.String(), want)
			}
		}
	})
}

// What a tool asks the model is within the call, by whatever context it asks,
// and counts for the turn.
func TestTraceOfSampling(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	var sees map[string]string
	asks := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		if _, err := call.Sample(ctx, sampleRequest("one")); err != nil {
			return invoker.Output{}, err
		}
		elsewhere, other := telemetry.StartConnect(telemetry.With(context.Background(), s.Telemetry), "other")
		defer other.End(0, 0, nil)
		request := sampleRequest("two")
		request.Temperature, request.MaxTokens = new(0.5), 9
		_, err := call.Sample(elsewhere, request)
		return invoker.Output{}, err
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}, Usage: usage(1, 1)},
		conversetest.Line{Text: "one", Usage: usage(10, 1)},
		conversetest.Line{Err: &converse.ModelError{Message: "no temperature", Status: 400}},
		conversetest.Line{Text: "two", Usage: usage(100, 1), Expect: func(*converse.Request) error { return nil }},
		conversetest.Line{Text: "done", Usage: usage(1000, 1)},
	)
	watched := contextual{script, func(ctx context.Context) { sees = fieldsOf(ctx) }}
	play(t, converse.New(watched, newRoster(t, asks), &converse.Options{ID: "talk-1", Telemetry: s.Telemetry}), "go")
	wantTree(t, s,
		"invoke_agent answered",
		"  chat script",
		"  execute_tool local__ask",
		"    chat script",
		"    chat script 400",
		"    chat script",
		"  chat script",
		"connect other",
	)
	wantAttributes(t, s.find(t, "invoke_agent", 0), map[string]string{
		"gen_ai.usage.input_tokens": "1111", "consort.turn.exchanges": "5", "consort.turn.invocations": "1", "gen_ai.conversation.id": "talk-1",
	})
	wantAttributes(t, s.find(t, "chat script", 2), map[string]string{
		"gen_ai.request.temperature": "0.5", "gen_ai.request.max_tokens": "9", "gen_ai.conversation.id": "talk-1",
	})
	wantAttributes(t, s.find(t, "chat script", 3), map[string]string{"gen_ai.request.temperature": "", "gen_ai.request.max_tokens": "9"})
	if sees["conversation_id"] != "talk-1" {
		t.Errorf("the model sees %v", sees)
	}
}

// A conversation that is a tool nests under the call, and is one of its own.
func TestTraceOfAConversationAsATool(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	tool, err := agenttool.New(func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(unnamed{conversetest.NewScript(conversetest.Line{Text: "hello"})}, nil, &converse.Options{ID: id}), nil
	}, &agenttool.Options{Name: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close(context.Background())
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("helper", `{"message":"hello"}`)}, Usage: usage(1, 1)},
		conversetest.Line{Text: "done", Usage: usage(10, 1)},
	)
	play(t, converse.New(script, newRoster(t, tool), &converse.Options{ID: "outer", Telemetry: s.Telemetry}), "go")
	wantTree(t, s,
		"invoke_agent answered",
		"  chat script",
		"  execute_tool local__helper",
		"    invoke_agent answered",
		"      chat",
		"  chat script",
	)
	inner := attributeOf(s.find(t, "invoke_agent", 1), "gen_ai.conversation.id")
	if inner == "outer" || inner == "" || attributeOf(s.find(t, "chat", 0), "gen_ai.conversation.id") != inner {
		t.Errorf("the inner conversation is %q", inner)
	}
	wantAttributes(t, s.find(t, "invoke_agent", 0), map[string]string{"gen_ai.usage.input_tokens": "11", "consort.turn.exchanges": "2"})
}

// No attribute, status or event of any span has a secret, whoever says it.
func TestTraceKeepsSecrets(t *testing.T) {
	const trusted, known = "hunter2-hunter2", "sk-4f9b0c7de1a2"
	hide := func(text string) string { return strings.ReplaceAll(text, known, "[gone]") }
	s := newSeen(t, telemetry.Options{Content: true, Redact: hide})
	leaks := fn("leak", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{
			canister.Text("it is " + trusted + " and " + known),
			canister.StructuredContent{JSON: json.RawMessage(`{"key":"` + trusted + `"}`)},
		}}, nil
	})
	fails := fn("fail", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.ExecutionFailed, "%s", trusted+" was refused, and so was "+known)
	})
	arguments := `{"a":"` + trusted + `","b":"` + known + `"}`
	script := conversetest.NewScript(
		conversetest.Line{Text: trusted + " " + known, Retries: []converse.Retry{{Attempt: 1, Err: errors.New(trusted + known)}},
			Calls: []conversetest.Call{
				call("leak", arguments), call("fail", arguments), call("nothing", arguments), call("leak", trusted), {Name: trusted, Arguments: known},
			}},
		conversetest.Line{Err: &converse.ModelError{Message: "bad key " + known + " of " + trusted, Status: 401}},
	)
	talk := converse.New(script, newRoster(t, leaks, fails), &converse.Options{
		Telemetry: s.Telemetry, Redact: hide, Trusted: []invoker.Value{invoker.NewTrusted[string]("password").Secret().Value(trusted)},
	})
	playUntil(t, talk, nil)
	if s.tree(t); len(s.spans.Ended()) != 9 {
		t.Fatalf("there are %d spans", len(s.spans.Ended()))
	}
	recorded := 0
	for _, span := range s.spans.Ended() {
		text := fmt.Sprint(span.Name(), span.Status(), span.Events())
		for _, a := range span.Attributes() {
			text += fmt.Sprintln(a.Key, a.Value.String())
		}
		if strings.Contains(text, trusted) || strings.Contains(text, known) {
			t.Errorf("a secret is in the span %q: %s", span.Name(), text)
		}
		if strings.Contains(text, "gen_ai.tool.call.arguments") {
			recorded++
		}
	}
	if recorded != 5 {
		t.Errorf("the arguments of %d calls were recorded", recorded)
	}
}

// What the conversation itself knows as secret is in no status and no event, with
// a Telemetry that knows nothing of it.
func TestTraceRedactsErrors(t *testing.T) {
	const known = "sk-4f9b0c7de1a2"
	s := newSeen(t, telemetry.Options{})
	fails := fn("fail", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.NotFound, "%s", known+" is refused")
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("fail", "{}")}, Retries: []converse.Retry{{Attempt: 1, Err: errors.New(known)}}},
		conversetest.Line{Err: &converse.ModelError{Message: "bad key " + known, Status: 401}},
	)
	playUntil(t, converse.New(script, newRoster(t, fails), &converse.Options{
		Telemetry: s.Telemetry, Redact: func(text string) string { return strings.ReplaceAll(text, known, "[gone]") },
	}), nil)
	wantTree(t, s, "invoke_agent 401", "  chat script", "  execute_tool local__fail NOT_FOUND", "  chat script 401")
	for _, span := range s.spans.Ended() {
		if text := fmt.Sprint(span.Status(), span.Events(), span.Attributes()); strings.Contains(text, known) {
			t.Errorf("a secret is in the span %q: %s", span.Name(), text)
		}
	}
	if got := s.find(t, "invoke_agent", 0).Status().Description; got != "model: bad key [gone] (status 401)" {
		t.Errorf("the turn says %q", got)
	}
}

// A model that does not stream has no first piece.
func TestTraceOfAWholeAnswer(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	script := described{conversetest.NewScript(conversetest.Line{Text: "Hello."}), telemetry.ModelInfo{
		Provider: "here", Name: "whole", Whole: true, Address: "localhost", Port: 80, Seed: new(int64(7)),
	}}
	play(t, converse.New(script, nil, &converse.Options{Telemetry: s.Telemetry}), "go")
	wantAttributes(t, s.find(t, "chat whole", 0), map[string]string{
		"gen_ai.request.stream": "", "gen_ai.response.time_to_first_chunk": "", "gen_ai.provider.name": "here",
		"server.address": "localhost", "server.port": "80", "gen_ai.request.seed": "7",
	})
}

type described struct {
	*conversetest.Script
	info telemetry.ModelInfo
}

func (d described) Describe() telemetry.ModelInfo { return d.info }

// Each line of a turn in which much goes wrong says of which conversation and
// which trace it is, once, and has a name.
func TestLinesOfATurn(t *testing.T) {
	for _, traced := range []bool{false, true} {
		s := newSeen(t, telemetry.Options{})
		core, lines := observer.New(zapcore.DebugLevel)
		keeps, kept := observer.New(zapcore.DebugLevel)
		fails := func(name string, err error) invoker.Invoker {
			return fn(name, func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, err })
		}
		roster := newRoster(t, echo("a"), echo("deny"), echo("change"),
			fails("plain", errors.New("an internal secret")), fails("told", invoker.Failf(invoker.NotFound, "no")),
			fn("panic", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("boo") }),
			fn("long", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
				call.Log(invoker.LogEntry{Level: "warning", Logger: "inner", Data: json.RawMessage(`"long"`)})
				return invoker.Output{Content: canister.Texts(strings.Repeat("x", 2000))}, nil
			}))
		opts := &converse.Options{
			ID: "talk-1", Logger: zap.New(core), Audit: audit.New(audit.Zap(zap.New(keeps)), nil), Limits: converse.Limits{ResultBytes: 1000},
			Spill: func(context.Context, string, canister.Content) (canister.LinkContent, error) {
				return canister.LinkContent{}, errors.New("the disk is full")
			},
			Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
				switch ask.Tool {
				case "deny":
					return converse.Decision{}, errors.New("nobody is there")
				case "change":
					return converse.Change(json.RawMessage(`1`)), nil
				}
				return converse.Allow(), nil
			},
		}
		if traced {
			opts.Telemetry = s.Telemetry
		}
		var asked conversetest.Line
		for _, tool := range []string{"a", "deny", "change", "plain", "told", "panic", "long", "nothing"} {
			asked.Calls = append(asked.Calls, call(tool, "{}"))
		}
		play(t, converse.New(conversetest.NewScript(asked, conversetest.Line{Text: "Oh."}), roster, opts), "go")
		if lines.Len() < 9 || kept.Len() != 8 {
			t.Errorf("there are %d lines, and %d of the audit", lines.Len(), kept.Len())
		}
		id := ""
		if traced {
			id = s.find(t, "invoke_agent", 0).SpanContext().TraceID().String()
		}
		for _, line := range append(lines.All(), kept.All()...) {
			for key, want := range map[string]string{"conversation_id": "talk-1", "trace_id": id} {
				var found []string
				for _, field := range line.Context {
					if field.Key == key {
						found = append(found, fieldText(field))
					}
				}
				if got := strings.Join(found, " and "); got != want {
					t.Errorf("traced %v: %q has %s = %q, want %q", traced, line.Message, key, got, want)
				}
			}
			if line.ContextMap()["event"] == nil {
				t.Errorf("%q has no name", line.Message)
			}
		}
	}
}

func fieldText(field zapcore.Field) string {
	if stringer, ok := field.Interface.(fmt.Stringer); ok {
		return stringer.String()
	}
	return field.String
}

// unnamed is a model without a name.
type unnamed struct{ model converse.Model }

func (u unnamed) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return u.model.Exchange(ctx, request)
}
