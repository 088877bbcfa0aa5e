// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// rawMeta is what each request of the newest protocol carries, and more.
func rawMeta(more string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw",` +
		`"version":"1"},"io.modelcontextprotocol/clientCapabilities":{}` + more + `}`
}

// post sends one handwritten request of the newest protocol.
func post(t *testing.T, url, method, params string, header http.Header) (status int, body string) {
	t.Helper()
	text := `{"jsonrpc":"2.0","id":"raw-1","method":"` + method + `","params":{` + params + `}}`
	req, err := http.NewRequestWithContext(mcptest.Within(t), http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "add",
	} {
		if req.Header.Get(name) == "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(said)
}

const addCall = `"name":"add","arguments":{"a":1,"b":2},`

// TestTraceParents: _meta takes precedence over a handler around the server, and that
// over the headers; the others become links.
func TestTraceParents(t *testing.T) {
	const (
		inMeta   = `,"traceparent":"00-0000000000000000000000000000000a-000000000000000a-01"`
		inHeader = "00-0000000000000000000000000000000b-000000000000000b-01"
	)
	around := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 12}, SpanID: trace.SpanID{7: 12}, TraceFlags: trace.FlagsSampled})
	for name, test := range map[string]struct {
		meta, header string
		around       bool
		parent, link string
	}{
		"nothing":            {},
		"meta":               {meta: inMeta, parent: "a"},
		"header":             {header: inHeader, parent: "b"},
		"meta, header":       {meta: inMeta, header: inHeader, parent: "a", link: "b"},
		"around":             {around: true, parent: "c"},
		"header, around":     {header: inHeader, around: true, parent: "c"},
		"all":                {meta: inMeta, header: inHeader, around: true, parent: "a", link: "c"},
		"broken meta":        {meta: `,"traceparent":"00-xyz"`, header: inHeader, parent: "b"},
		"meta is no string":  {meta: `,"traceparent":{"a":1},"tracestate":7`, header: inHeader, parent: "b"},
		"state is too long":  {meta: inMeta + `,"tracestate":"` + strings.Repeat("a=b,", 1<<16) + `"`, parent: "a"},
		"all zero":           {meta: `,"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"`},
		"a version too many": {meta: `,"traceparent":"ff-0000000000000000000000000000000a-000000000000000a-01"`},
		"long":               {meta: `,"traceparent":"` + strings.Repeat("0", 1<<20) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := mcptest.RecordSpans(telemetry.Options{})
			served := tracedServer(t, w, nil).Handler()
			listener := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if test.around {
					r = r.WithContext(trace.ContextWithSpanContext(r.Context(), around))
				}
				served.ServeHTTP(rw, r)
			}))
			defer listener.Close()
			header := http.Header{}
			if test.header != "" {
				header.Set("Traceparent", test.header)
			}
			if status, body := post(t, listener.URL, "tools/call", addCall+rawMeta(test.meta), header); status != 200 || !strings.Contains(body, `"sum":3`) {
				t.Fatalf("%d %s", status, body)
			}
			span := mcptest.OneSpan(t, w.Spans(t), "server", "tools/call add")
			long := func(id string) string {
				if id == "" {
					return ""
				}
				return strings.Repeat("0", 15) + id
			}
			if span.Parent != long(test.parent) {
				t.Errorf("the parent is %s, want %s", span.Parent, long(test.parent))
			}
			if links := strings.Join(span.Links, " "); links != long(test.link) {
				t.Errorf("linked is %q, want %q", links, long(test.link))
			}
			span.Want(t, map[string]any{"jsonrpc.request.id": "raw-1", "mcp.session.id": nil, "mcp.protocol.version": "2026-07-28"})
		})
	}
}

// TestTraceOfStrangers: values made up by a client name no span and no attribute of a
// measurement.
func TestTraceOfStrangers(t *testing.T) {
	w := mcptest.RecordSpans(telemetry.Options{})
	listener := httptest.NewServer(tracedServer(t, w, nil).Handler())
	defer listener.Close()
	unknown := http.Header{"Mcp-Name": {"made-up"}}
	post(t, listener.URL, "tools/call", `"name":"made-up","arguments":{},`+rawMeta(""), unknown)
	post(t, listener.URL, "prompts/get", `"name":"made-up",`+rawMeta(""), unknown)
	post(t, listener.URL, "made/up", rawMeta(""), unknown)
	spans := w.Spans(t)
	mcptest.OneSpan(t, spans, "server", "tools/call").Want(t, map[string]any{"gen_ai.tool.name": nil, "error.type": nil, "rpc.response.status_code": "-32602"})
	mcptest.OneSpan(t, spans, "server", "prompts/get").Want(t,
		map[string]any{"gen_ai.prompt.name": nil, "error.type": nil, "rpc.response.status_code": "-32602"})
	for _, set := range w.Durations(t, "mcp.server.operation.duration") {
		for key, value := range set {
			if strings.Contains(value, "made") {
				t.Errorf("%s is %q", key, value)
			}
		}
	}
}

// TestTraceOfServerSessions: each session is measured once, when it ends.
func TestTraceOfServerSessions(t *testing.T) {
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		w := mcptest.RecordSpans(telemetry.Options{})
		srv := tracedServer(t, w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ctx, toServer, fromServer) }()
		go func() { _, _ = io.Copy(io.Discard, toClient) }()
		first := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocol +
			`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
		if protocol == "2026-07-28" {
			first = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + rawMeta("") + `}}`
		}
		fmt.Fprintln(fromClient, first)
		fromClient.Close()
		if err := mcptest.Await(t, "the end", ended); err != nil {
			t.Error(err)
		}
		cancel()
		want := []map[string]string{{"mcp.protocol.version": protocol}}
		if got := w.Durations(t, "mcp.server.session.duration"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("over a stream: %v, want %v", got, want)
		}
		name := "initialize"
		if protocol == "2026-07-28" {
			name = "tools/list"
		}
		mcptest.OneSpan(t, w.SpansSoFar(), "server", name).Want(t,
			map[string]any{"mcp.session.id": nil, "jsonrpc.request.id": "1", "network.transport": "pipe", "mcp.protocol.version": protocol})
		w = mcptest.RecordSpans(telemetry.Options{})
		srv = tracedServer(t, w, nil)
		listener := httptest.NewServer(srv.Handler())
		c, err := mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: protocol}}).Open(mcptest.Within(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
		listener.Close()
		if err := srv.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
		want = []map[string]string{{"mcp.protocol.version": protocol, "network.protocol.name": "http"}}
		if protocol == "2026-07-28" {
			want = nil // it has no sessions
		}
		if got := w.Durations(t, "mcp.server.session.duration"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("over HTTP: %v, want %v", got, want)
		}
	}
}

// TestTraceOfQuestions: before 2026-07-28 a question is a request of the
// server's, in the trace of the call; since, each round of the call is one of
// the client's.
func TestTraceOfQuestions(t *testing.T) {
	asks := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		name, err := askName(ctx)
		return invoker.Output{Content: canister.Texts(name)}, err
	})
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		srv, client := mcptest.RecordSpans(telemetry.Options{}), mcptest.RecordSpans(telemetry.Options{})
		listener := httptest.NewServer(newServer(t, &server.Options{OwnNames: true, Telemetry: srv.Telemetry}, asks).Handler())
		t.Cleanup(listener.Close)
		ctx, root := client.StartRoot(t)
		var handed context.Context
		options := mcpadapter.ClientOptions{Protocol: protocol, Elicit: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			handed = ctx
			return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"name": "Ada"}}, nil
		}}
		source := mcpadapter.HTTP(listener.URL, &mcpadapter.HTTPOptions{ClientOptions: options})
		c, err := source.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := mcptest.Tool(t, c, "ask").Invoke(ctx, mcptest.RawCall(`{}`)); err != nil || canister.TextOf(out.Content) != "Ada" {
			t.Errorf("got %v, %v", out, err)
		}
		root.End()
		if err := c.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
		ours, theirs := client.Spans(t), srv.Spans(t)
		calls := mcptest.SpansNamed(ours, "client", "tools/call ask")
		for _, call := range calls {
			call.Want(t, map[string]any{"error.type": nil})
			if there := mcptest.ChildOf(t, theirs, call); there.Name != "tools/call ask" || call.Parent != root.SpanContext().SpanID().String() {
				t.Errorf("a round: %+v below %+v", there, call)
			}
		}
		if protocol == "2026-07-28" {
			if len(calls) != 2 || calls[0].Attributes["jsonrpc.request.id"] == calls[1].Attributes["jsonrpc.request.id"] ||
				len(mcptest.SpansNamed(ours, "server", "elicitation/create")) != 0 {
				t.Errorf("two rounds are %s", mcptest.SpanNames(ours))
			}
			continue
		}
		asked := mcptest.OneSpan(t, theirs, "client", "elicitation/create")
		answered := mcptest.OneSpan(t, ours, "server", "elicitation/create")
		if len(calls) != 1 || asked.Parent != mcptest.ChildOf(t, theirs, calls[0]).ID || answered.Parent != asked.ID || answered.Trace != calls[0].Trace {
			t.Errorf("a question: %+v, answered %+v", asked, answered)
		}
		asked.Want(t, map[string]any{"mcp.protocol.version": protocol, "network.transport": "tcp", "server.address": nil, "error.type": nil})
		answered.Want(t, map[string]any{"mcp.protocol.version": protocol, "network.transport": "tcp"})
		if span := trace.SpanContextFromContext(handed); span.SpanID().String() != answered.ID {
			t.Errorf("who answers works below %s, want %s", span.SpanID(), answered.ID)
		}
	}
}

// TestTraceInLog: log lines about a request contain its trace.
func TestTraceInLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	w := mcptest.RecordSpans(telemetry.Options{})
	fails := rawTool(t, invoker.Definition{Name: "fails"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, errors.New("the cause")
	})
	panics := rawTool(t, invoker.Definition{Name: "panics"}, func(context.Context, *invoker.Call) (invoker.Output, error) { panic("oh") })
	srv := newServer(t, &server.Options{OwnNames: true, Telemetry: w.Telemetry, Logger: zap.New(core)}, fails, panics)
	listener := httptest.NewServer(srv.Handler())
	t.Cleanup(listener.Close)
	c := mcptest.Open(t, mcpadapter.HTTP(listener.URL, nil))
	for _, name := range []string{"fails", "panics"} {
		_, _ = mcptest.Tool(t, c, name).Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		span := mcptest.OneSpan(t, w.Spans(t), "server", "tools/call "+name)
		if !slices.ContainsFunc(logs.All(), func(line observer.LoggedEntry) bool {
			fields := line.ContextMap()
			return fields["trace_id"] == span.Trace && fields["span_id"] == span.ID && fields["tool"] == name
		}) {
			t.Errorf("no line of the failed call %s says that it is of %s", name, span.Trace)
		}
	}
}
