// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
)

// nilError is returned by a program that returns a nil pointer as an error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }
func (e *nilError) Unwrap() error { return errors.New(e.text) }

func TestFaultsAreMarked(t *testing.T) {
	var none *nilError
	missing := &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist}
	said := canister.Texts("own words of the tool")
	for name, test := range map[string]struct {
		fault                       *telemetry.Fault
		content                     bool
		kind, message, cause, words string
	}{
		"failure": {
			fault: telemetry.FaultOf(invoker.Failf(invoker.NotFound, "There is none: %w", missing)), kind: "NOT_FOUND",
			message: "There is none: open /a: file does not exist", cause: "*fs.PathError", words: "open /a: file does not exist",
		},
		"no cause": {fault: telemetry.FaultOf(&invoker.Failure{Code: invoker.Denied, Message: "No."}), kind: "DENIED", message: "No."},
		"said":     {fault: telemetry.FaultOf(&invoker.Failure{Code: invoker.ExecutionFailed, Content: said}), kind: "EXECUTION_FAILED"},
		"said, wanted": {
			fault: telemetry.FaultOf(&invoker.Failure{Code: invoker.ExecutionFailed, Content: said}), content: true,
			kind: "EXECUTION_FAILED", message: "own words of the tool",
		},
		"no type": {fault: &telemetry.Fault{Message: "Oh."}, kind: "_OTHER", message: "Oh."},
		"wrapped": {
			fault: &telemetry.Fault{Type: "x", Cause: fmt.Errorf("a: %w", invoker.AsFailure(fmt.Errorf("b: %w", missing)))},
			kind:  "x", cause: "*fs.PathError", words: "a: ",
		},
		"joined": {fault: &telemetry.Fault{Type: "x", Cause: errors.Join(missing, missing)}, kind: "x", cause: "*errors.joinError", words: "open /a"},
		"nil pointer": {
			fault: &telemetry.Fault{Type: "x", Cause: none}, kind: "x", cause: "*telemetry_test.nilError",
			words: "a nil *telemetry_test.nilError without a text (its method Error panicked: runtime error: invalid memory address or nil pointer dereference)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := see(t, telemetry.Options{Content: test.content})
			_, tool := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: "add"})
			tool.End(said, test.fault)
			span := s.one("execute_tool add")
			if span.Status.Code != codes.Error || span.Status.Description != test.message || valueOf(span, "error.type").AsString() != test.kind {
				t.Errorf("the status is %v, the type %q", span.Status, valueOf(span, "error.type").AsString())
			}
			if valueOf(span, "gen_ai.tool.call.result").Type() != attribute.EMPTY {
				t.Error("a call that failed has a result")
			}
			if (test.cause != "") != (len(span.Events) == 1) {
				t.Fatalf("the events are %v", span.Events)
			}
			if test.cause == "" {
				return
			}
			event := attribute.NewSet(span.Events[0].Attributes...)
			kind, _ := event.Value("exception.type")
			words, _ := event.Value("exception.message")
			if span.Events[0].Name != "exception" || kind.AsString() != test.cause || !strings.HasPrefix(words.AsString(), test.words) {
				t.Errorf("the event is %v", span.Events[0])
			}
		})
	}
	if telemetry.FaultOf(nil) != nil {
		t.Error("no failure is a fault")
	}
}

func TestSecretsStayOut(t *testing.T) {
	const known, trusted = "sk-4f9b0c7de1a2", "hunter2-hunter2"
	token := invoker.NewTrusted[string]("token").Secret()
	redacted := func(text string) string { return strings.ReplaceAll(text, known, "[key]") }
	text := "a " + known + " b " + trusted + strings.Repeat(" and so on", 200)
	inJSON, _ := json.Marshal(map[string]any{"q": text, known: 1})
	for _, content := range []bool{false, true} {
		s := see(t, telemetry.Options{Content: content, Redact: redacted, ContentBytes: 1 << 20})
		ctx := invoker.WithTrusted(s.context(), token.Value(trusted))
		fault := &telemetry.Fault{Type: "x", Message: text, Cause: errors.New(text), Said: canister.Texts(text)}
		_, tool := telemetry.StartTool(ctx, telemetry.ToolCall{Name: text, Unknown: true, Description: text, Arguments: inJSON})
		tool.End(canister.Texts(text), fault)
		_, tool = telemetry.StartTool(ctx, telemetry.ToolCall{Name: "add"})
		tool.End([]canister.Content{canister.StructuredContent{JSON: inJSON}}, nil)
		_, request := telemetry.StartRequest(ctx, telemetry.Call{Method: "resources/read", URI: "http://h/?q=" + known}, telemetry.Peer{})
		request.End(canister.Texts(text), nil)
		history := []canister.Canister{
			canister.Supervisor{Content: canister.Texts(text)},
			canister.User{Content: []canister.Content{canister.Text(text), canister.ResourceContent{URI: known, Text: text}}},
			canister.Document{Title: text, URI: known, Content: canister.Texts(text)},
			canister.Assistant{Content: canister.Texts(text)}, canister.Invocation{CallID: known, Arguments: string(inJSON)},
			canister.Invocation{Arguments: text},
			canister.Result{Content: canister.Texts(text)},
		}
		_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{History: history, Tools: []*invoker.Definition{{Name: "t", Description: text}}})
		chat.Retried(1, 0, *fault)
		chat.End(telemetry.ChatResult{
			Message:     canister.Assistant{Model: known, Finish: known, Content: canister.Texts(text)},
			Invocations: []canister.Invocation{{Arguments: string(inJSON)}},
		})
		marks := 0
		for _, span := range s.spans.GetSpans() {
			all := fmt.Sprint(span.Name, span.Status, span.Events, span.Attributes)
			if strings.Contains(all, known) || strings.Contains(all, trusted) {
				t.Errorf("%s shows a secret: %s", span.Name, all)
			}
			marks += strings.Count(all, "[key]")
		}
		if want := map[bool]int{false: 6, true: 20}[content]; marks < want {
			t.Errorf("only %d secrets were taken out, with content %t", marks, content)
		}
	}
}

func TestWhatIsRecordedIsShortAndUTF8(t *testing.T) {
	long := strings.Repeat("ä\xff", 5000)
	lists := make([]string, 100)
	for i := range lists {
		lists[i] = long
	}
	s := see(t, telemetry.Options{Content: true})
	ctx := telemetry.WithConversation(s.context(), long)
	model := telemetry.ModelInfo{Provider: long, Name: long, Address: long, Stop: lists}
	peer := telemetry.Peer{Ensemble: long, Protocol: long, Session: long, Transport: long, Network: long, System: long, Address: long, Application: long}
	fault := &telemetry.Fault{Type: long, Message: long, Cause: errors.New(long)}
	ctx, agent := telemetry.StartAgent(ctx, long, model)
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Model: model, History: []canister.Canister{canister.User{Content: canister.Texts(long)}}})
	chat.Retried(1, 0, *fault)
	chat.End(telemetry.ChatResult{
		Message: canister.Assistant{Model: long, Finish: canister.Finish(long), Usage: &canister.Usage{}, Content: canister.Texts(long)}, Fault: fault,
	})
	for _, unknown := range []bool{false, true} {
		_, tool := telemetry.StartTool(ctx,
			telemetry.ToolCall{Name: long, Ensemble: long, Description: long, Call: long, Arguments: json.RawMessage(long), Unknown: unknown})
		tool.End(nil, fault)
	}
	call := telemetry.Call{Method: long, Tool: long, URI: long, ID: long, RPC: long, Arguments: json.RawMessage(`{"a":"` + long + `"}`)}
	_, request := telemetry.StartRequest(ctx, call, peer)
	request.Tool(long)
	request.Prompt(long)
	request.Refused(long)
	request.End(canister.Texts(long), nil)
	_, served := s.StartServing(ctx, call, peer)
	served.End(nil, fault)
	session := s.StartSession(peer, true)
	session.End(fault)
	_, connect := telemetry.StartConnect(ctx, long)
	connect.End(1, 0, fault)
	agent.End(telemetry.AgentResult{Reason: long, Finish: long, Fault: fault})

	check := func(where string, list []attribute.KeyValue, most int) {
		t.Helper()
		if len(list) > 32 {
			t.Errorf("%s has %d attributes", where, len(list))
		}
		for _, a := range list {
			text := a.Value.String()
			if !utf8.ValidString(text) || len(text) > most {
				t.Errorf("%s has %s of %d bytes, valid UTF-8: %t", where, a.Key, len(text), utf8.ValidString(text))
			}
		}
	}
	spans := s.spans.GetSpans()
	if len(spans) != 7 {
		t.Fatalf("there are %d spans", len(spans))
	}
	for _, span := range spans {
		if len(span.Name) > 256 || !utf8.ValidString(span.Name) || len(span.Status.Description) > 1024 || !utf8.ValidString(span.Status.Description) {
			t.Errorf("a span's name has %d bytes, its status %d", len(span.Name), len(span.Status.Description))
		}
		most := 4096
		for _, a := range span.Attributes {
			if a.Value.Type() == attribute.STRINGSLICE {
				most = 16 * (1024 + 8)
			}
		}
		check(span.Name, span.Attributes, most)
		for _, event := range span.Events {
			check(event.Name, event.Attributes, 1024)
		}
	}
	for name, m := range s.metrics() {
		_, sets := histogram(m)
		for _, set := range sets {
			check(name, set.ToSlice(), 256)
		}
	}
}

func TestEndCountsOnce(t *testing.T) {
	s := see(t, telemetry.Options{Content: true})
	ctx := s.context()
	fault := &telemetry.Fault{Type: "LATE"}
	ctx, agent := telemetry.StartAgent(ctx, "", telemetry.ModelInfo{})
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{})
	_, tool := telemetry.StartTool(ctx, telemetry.ToolCall{Name: "add"})
	_, request := telemetry.StartRequest(ctx, telemetry.Call{Method: "ping"}, telemetry.Peer{})
	_, connect := telemetry.StartConnect(ctx, "atlas")
	session := s.StartSession(telemetry.Peer{}, true)
	for _, f := range []*telemetry.Fault{nil, fault} {
		chat.End(telemetry.ChatResult{Fault: f, Message: canister.Assistant{Usage: &canister.Usage{Input: 1}}})
		tool.End(nil, f)
		request.End(nil, f)
		connect.End(0, 0, f)
		session.End(f)
		agent.End(telemetry.AgentResult{Fault: f})
	}
	for _, span := range s.spans.GetSpans() {
		if span.Status.Code != codes.Unset {
			t.Errorf("%s has the status %v", span.Name, span.Status)
		}
	}
	for name, m := range s.metrics() {
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok && (len(data.DataPoints) != 1 || data.DataPoints[0].Count != 1) {
			t.Errorf("%s was measured more than once: %v", name, data.DataPoints)
		}
		if data, ok := m.Data.(metricdata.Histogram[int64]); ok && (len(data.DataPoints) != 2 || data.DataPoints[0].Count != 1) {
			t.Errorf("%s was measured more than once: %v", name, data.DataPoints)
		}
	}
}

// Nothing is made, and nothing panics, without a Telemetry.
func TestNilDoesNothing(t *testing.T) {
	var none *telemetry.Telemetry
	s := &seen{t: t, Telemetry: none}
	work(s, &telemetry.Fault{})
	bare(s)
	ctx := telemetry.With(t.Context(), none)
	if ctx != t.Context() || telemetry.From(ctx) != nil {
		t.Error("nil is in the context")
	}
	stop, err := none.Observe(nil)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	carrier := propagation.MapCarrier{}
	telemetry.Inject(ctx, carrier)
	if none.Extract(ctx, propagation.MapCarrier{"traceparent": parentHeader}) != ctx || len(carrier) != 0 {
		t.Error("nil takes part in traces")
	}
}

func TestServersAreNotBlamedForTheirClients(t *testing.T) {
	for code, blamed := range map[string]bool{
		"-32700": false, "-32601": false, "-32602": false, "-32002": false, "-32603": true, "-32000": true,
		"INVALID_ARGUMENT": false, "NOT_FOUND": false, "UNAUTHENTICATED": false, "INTERNAL": true, "UNAVAILABLE": true, "UNIMPLEMENTED": true,
	} {
		s := see(t, telemetry.Options{})
		ctx, asked := telemetry.StartRequest(s.context(), telemetry.Call{Method: "ask"}, telemetry.Peer{})
		_, served := s.StartServing(ctx, telemetry.Call{Method: "ask"}, telemetry.Peer{})
		for _, r := range []*telemetry.Request{served, asked} {
			r.Refused(code)
			r.End(nil, &telemetry.Fault{Type: code, Message: "No."})
		}
		for _, span := range s.spans.GetSpans() {
			want := blamed || span.SpanKind == trace.SpanKindClient
			if got := span.Status.Code == codes.Error; got != want || valueOf(span,
				"rpc.response.status_code").AsString() != code || (valueOf(span, "error.type").AsString() == code) != want {
				t.Errorf("%s: the span of the %v is an error: %t, with %v", code, span.SpanKind, got, span.Attributes)
			}
		}
	}
}

const parentHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTracesGoAcross(t *testing.T) {
	s := see(t, telemetry.Options{})
	ctx, request := telemetry.StartRequest(s.context(), telemetry.Call{Method: "ask"}, telemetry.Peer{})
	carrier := propagation.MapCarrier{}
	telemetry.Inject(ctx, carrier)

	around, other := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: "around"})
	_, served := s.StartServing(s.Extract(around, carrier), telemetry.Call{Method: "serve"}, telemetry.Peer{})
	// A server within the work of the first one has no span around it.
	within, again := s.StartServing(s.Extract(s.Extract(around, carrier), carrier), telemetry.Call{Method: "again"}, telemetry.Peer{})
	carrier = propagation.MapCarrier{}
	telemetry.Inject(within, carrier)
	_, inner := s.StartServing(s.Extract(within, carrier), telemetry.Call{Method: "inner"}, telemetry.Peer{})
	for _, r := range []*telemetry.Request{inner, again, served, request} {
		r.End(nil, nil)
	}
	other.End(nil, nil)
	asked, answered := s.one("ask"), s.one("serve")
	if answered.Parent.SpanID() != asked.SpanContext.SpanID() || answered.SpanContext.TraceID() != asked.SpanContext.TraceID() || !answered.Parent.IsRemote() {
		t.Errorf("the parent of the server's span is %v", answered.Parent)
	}
	if len(answered.Links) != 1 || answered.Links[0].SpanContext.SpanID() != s.one("execute_tool around").SpanContext.SpanID() {
		t.Errorf("the links are %v", answered.Links)
	}
	if got := s.one("inner"); len(got.Links) != 0 || got.Parent.SpanID() != s.one("again").SpanContext.SpanID() {
		t.Errorf("the links of what is served within are %v", got.Links)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(parentHeader, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "userId=alice,serverNode=DF%2028")
	f.Add("00-00000000000000000000000000000000-0000000000000000-01", strings.Repeat("a=b,", 1000), strings.Repeat("a=b;c,", 9000))
	f.Add(strings.TrimSuffix(parentHeader, "1")+"0", "rojo=1", "userId=alice")
	f.Add("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-zz", "=,=\x00", "%%%=\xff")
	f.Fuzz(func(t *testing.T, parent, state, baggage string) {
		both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
		s := see(t, telemetry.Options{Propagator: both})
		ctx := s.Extract(s.context(), propagation.MapCarrier{"traceparent": parent, "tracestate": state, "baggage": baggage})
		ctx, served := s.StartServing(ctx, telemetry.Call{Method: "ask"}, telemetry.Peer{})
		served.End(nil, nil)
		out := propagation.MapCarrier{}
		telemetry.Inject(ctx, out)
		for name, value := range out {
			if len(value) > 16<<10 || !utf8.ValidString(value) || strings.ContainsAny(value, "\r\n") {
				t.Errorf("%s goes on as %q", name, value)
			}
		}
		span := trace.SpanContextFromContext(ctx) // not recorded if the parent is not sampled
		if !span.IsValid() || span.IsSampled() != (len(s.spans.GetSpans()) == 1) {
			t.Errorf("the span %v, of %d recorded", span, len(s.spans.GetSpans()))
		}
	})
}

// What a program does within a tool is in the trace of the tool.
func TestContextsCarryTheSpan(t *testing.T) {
	s := see(t, telemetry.Options{})
	ctx, tool := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: "add"})
	_, inner := trace.SpanFromContext(ctx).TracerProvider().Tracer("program").Start(ctx, "own")
	inner.End()
	tool.End(nil, nil)
	if s.one("own").Parent.SpanID() != s.one("execute_tool add").SpanContext.SpanID() {
		t.Error("the program's span is elsewhere")
	}
	fields := telemetry.Fields(telemetry.WithConversation(ctx, "c-1"))
	if len(fields) != 3 || telemetry.Fields(context.Background()) != nil {
		t.Errorf("the fields are %v", fields)
	}
}

// A secret is taken out before a text is cut, or its beginning would stay.
func TestSecretsAreNotCutInTwo(t *testing.T) {
	const secret = "sk-4f9b0c7de1a2"
	s := see(t, telemetry.Options{Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[key]") }})
	for i := range len(secret) {
		text := strings.Repeat("x", 1024-i) + secret
		_, tool := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: fmt.Sprint(i), Description: text})
		tool.End(nil, &telemetry.Fault{Message: text, Cause: errors.New(text)})
		span := s.one(fmt.Sprint("execute_tool ", i))
		if all := fmt.Sprint(span.Status.Description, span.Events, span.Attributes); strings.Contains(all, "xsk") {
			t.Errorf("%d bytes of a secret stay", i)
		}
	}
}

func TestValues(t *testing.T) {
	s := see(t, telemetry.Options{})
	work(s, nil)
	for name, want := range map[string]string{
		"invoke_agent guide": `consort.turn.exchanges=1 consort.turn.invocations=1 consort.turn.reason=done gen_ai.agent.name=guide ` +
			`gen_ai.conversation.id=c-1 gen_ai.operation.name=invoke_agent gen_ai.output.type=json gen_ai.provider.name=openai ` +
			`gen_ai.request.max_tokens=100 gen_ai.request.model=m gen_ai.request.seed=7 gen_ai.request.stop_sequences=["."] ` +
			`gen_ai.request.temperature=0.5 gen_ai.request.top_p=0.5 gen_ai.response.finish_reasons=["stop"] ` +
			`gen_ai.usage.cache_creation.input_tokens=3 gen_ai.usage.cache_read.input_tokens=5 gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=7`,
		"chat m": `gen_ai.conversation.id=c-1 gen_ai.operation.name=chat gen_ai.output.type=json gen_ai.provider.name=openai ` +
			`gen_ai.request.max_tokens=100 gen_ai.request.model=m gen_ai.request.seed=7 gen_ai.request.stop_sequences=["."] ` +
			`gen_ai.request.stream=true gen_ai.request.temperature=0.5 gen_ai.request.top_p=0.5 gen_ai.response.finish_reasons=["tool_call"] ` +
			`gen_ai.response.model=m-2 gen_ai.response.time_to_first_chunk=* gen_ai.usage.cache_creation.input_tokens=3 ` +
			`gen_ai.usage.cache_read.input_tokens=5 gen_ai.usage.input_tokens=10 ` +
			`gen_ai.usage.output_tokens=7 gen_ai.usage.reasoning.output_tokens=2 server.address=models.example server.port=443`,
		"execute_tool atlas__find": `consort.ensemble=atlas gen_ai.agent.name=guide gen_ai.conversation.id=c-1 gen_ai.operation.name=execute_tool ` +
			`gen_ai.tool.call.id=i-1 gen_ai.tool.description=Finds. gen_ai.tool.name=atlas__find gen_ai.tool.type=function`,
		"tools/call find": `consort.alias=mcp.call consort.ensemble=atlas ` +
			`gen_ai.conversation.id=c-1 gen_ai.operation.name=execute_tool gen_ai.tool.name=find ` +
			`jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=s-1 network.protocol.name=http ` +
			`network.transport=tcp server.address=tools.example server.port=8080`,
		"connect atlas": `consort.ensemble=atlas consort.tools.aside=0 consort.tools.count=1`,
	} {
		for _, span := range s.spans.GetSpans() {
			if span.Name != name || span.SpanKind == trace.SpanKindServer {
				continue
			}
			var got []string
			for _, a := range span.Attributes {
				value := a.Value.String()
				if a.Key == "gen_ai.response.time_to_first_chunk" {
					value = "*"
				}
				got = append(got, string(a.Key)+"="+value)
			}
			slices.Sort(got)
			if all := strings.Join(got, " "); all != want {
				t.Errorf("%s has\n%s\nand not\n%s", name, all, want)
			}
		}
	}
	connect, agent := s.one("connect atlas"), s.one("invoke_agent guide")
	if connect.Parent.IsValid() || len(connect.Links) != 1 || connect.Links[0].SpanContext.SpanID() != agent.SpanContext.SpanID() {
		t.Errorf("the parent of an attempt to connect is %v, its links are %v", connect.Parent, connect.Links)
	}
}
