// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/sidecar"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// spans is a Telemetry whose spans a test can look at.
type spans struct {
	*telemetry.Telemetry
	kept   *tracetest.InMemoryExporter
	tracer trace.Tracer
}

func newSpans(t *testing.T) *spans {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	seen, err := telemetry.New(&telemetry.Options{Tracers: provider})
	if err != nil {
		t.Fatal(err)
	}
	return &spans{seen, kept, provider.Tracer("test")}
}

// one returns the only span of a kind and a name.
func (s *spans) one(t *testing.T, kind trace.SpanKind, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	var all []string
	for _, span := range s.kept.GetSpans() {
		all = append(all, span.SpanKind.String()+" "+span.Name)
		if span.SpanKind == kind && span.Name == name {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans of %v %q among %q", len(found), kind, name, all)
	}
	return found[0]
}

// has checks attributes; "" is one that must not be there.
func has(t *testing.T, span tracetest.SpanStub, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for _, a := range span.Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%v %s: %s is %q, want %q", span.SpanKind, span.Name, key, got[key], value)
		}
	}
}

// A list and a call are spans on both sides, in one trace, and the tool works in
// it.
func TestOneTrace(t *testing.T) {
	seen := newSpans(t)
	var within string
	look := ensembletest.NewTool("look", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		within = telemetry.TraceID(ctx)
		if telemetry.From(ctx) != seen.Telemetry {
			t.Error("the tool has no telemetry")
		}
		return invoker.Output{}, nil
	})
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{look}, Telemetry: seen.Telemetry}))
	host, port, _ := net.SplitHostPort(address)
	ctx, root := seen.tracer.Start(telemetry.With(t.Context(), seen.Telemetry), "root")
	connection, err := grpctool.Source(address, &grpctool.Options{Plaintext: true, Server: "farm"}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	if _, err := tool(t, connection, "look").Invoke(ctx, &invoker.Call{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, method, tool, operation, rpc, alias string }{
		{"tools/list", "tools/list", "", "", "ListTools", "mcp.tools.list"},
		{"tools/call look", "tools/call", "look", "execute_tool", "CallTool", "mcp.call"},
	} {
		client, srv := seen.one(t, trace.SpanKindClient, c.name), seen.one(t, trace.SpanKindServer, c.name)
		if client.Parent.SpanID() != root.SpanContext().SpanID() || srv.Parent.SpanID() != client.SpanContext.SpanID() ||
			srv.SpanContext.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("%s: the parents are %v and %v", c.name, client.Parent, srv.Parent)
		}
		both := map[string]string{
			"mcp.method.name": c.method, "gen_ai.tool.name": c.tool, "gen_ai.operation.name": c.operation, "consort.alias": c.alias,
			"rpc.system.name": "grpc", "rpc.method": grpctool.Service + "/" + c.rpc, "network.transport": "tcp",
			"network.protocol.name": "http", "network.protocol.version": "2",
			"error.type": "", "rpc.response.status_code": "", "gen_ai.tool.call.arguments": "",
		}
		has(t, client, both)
		has(t, srv, both)
		has(t, client, map[string]string{"server.address": host, "server.port": port, "consort.ensemble": "farm", "client.address": "", "mcp.app_id": ""})
		has(t, srv, map[string]string{"client.address": host, "server.address": ""})
	}
	if within != root.SpanContext().TraceID().String() {
		t.Errorf("the tool works in the trace %q", within)
	}
}

// What goes wrong is marked as the conventions say.
func TestFailuresInSpans(t *testing.T) {
	begun := make(chan struct{}, 1)
	inv, at := answering(t, plaintext(), func(ctx context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		switch request.IdempotencyKey {
		case "refused":
			return &toolspb.ToolCallResponse{ErrorCode: toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS, ErrorMessage: "no such farmer"}, nil
		case "status":
			return nil, status.Error(codes.ResourceExhausted, "later")
		case "long":
			begun <- struct{}{}
			<-ctx.Done()
		}
		return &toolspb.ToolCallResponse{Success: true}, nil
	})
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-begun
		cancel()
	}()
	for _, c := range []struct {
		call      string
		ctx       context.Context
		kind, say string
		status    string
	}{
		{"good", within(t), "", "", ""},
		{"refused", within(t), "tool_error", "The tool reported a failure.", ""},
		{"status", within(t), "RESOURCE_EXHAUSTED", "The server cannot accept the call now: later", "RESOURCE_EXHAUSTED"},
		{"long", ctx, "CANCELED", "The call was interrupted. It may or may not have taken effect.", ""},
	} {
		seen := newSpans(t)
		_, _ = inv.Invoke(telemetry.With(c.ctx, seen.Telemetry), &invoker.Call{ID: c.call})
		span := seen.one(t, trace.SpanKindClient, "tools/call tool")
		has(t, span, map[string]string{"error.type": c.kind, "rpc.response.status_code": c.status})
		if span.Status.Description != c.say {
			t.Errorf("%s: the status says %q, want %q", c.call, span.Status.Description, c.say)
		}
	}
	at.kill()
	seen := newSpans(t)
	_, _ = inv.Invoke(telemetry.With(within(t), seen.Telemetry), &invoker.Call{})
	has(t, seen.one(t, trace.SpanKindClient, "tools/call tool"), map[string]string{"error.type": "UNAVAILABLE"})
}

// On the server's side, an unknown tool gives no name to a span, and a denied call is not
// an error of the server.
func TestFailuresOfServersInSpans(t *testing.T) {
	seen := newSpans(t)
	srv := grpctool.NewServer(nil, &grpctool.ServerOptions{
		Tools:     []invoker.Invoker{ensembletest.Fails("fails", invoker.Failf(invoker.Conflict, "Somebody was faster."))},
		Telemetry: seen.Telemetry, Rate: 0.001, Burst: 3,
	})
	client := toolspb.NewMcpToolServiceClient(raw(t, registered(t, srv)))
	for _, name := range []string{"fails", "made up"} {
		if _, err := client.CallTool(within(t), &toolspb.ToolCallRequest{ToolName: name}); err != nil {
			t.Fatal(err)
		}
	}
	failed, absent := seen.one(t, trace.SpanKindServer, "tools/call fails"), seen.one(t, trace.SpanKindServer, "tools/call")
	has(t, failed, map[string]string{"error.type": "tool_error", "gen_ai.tool.name": "fails"})
	has(t, absent, map[string]string{"error.type": "tool_error", "gen_ai.tool.name": ""})
	if failed.Parent.IsValid() {
		t.Errorf("the parent is %v", failed.Parent)
	}
	if _, err := client.ListTools(within(t), &toolspb.ListToolsRequest{}); err != nil {
		t.Fatal(err)
	}
	seen.kept.Reset()
	if _, err := client.ListTools(within(t), &toolspb.ListToolsRequest{}); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("beyond the rate: %v", err)
	}
	has(t, seen.one(t, trace.SpanKindServer, "tools/list"), map[string]string{"rpc.response.status_code": "RESOURCE_EXHAUSTED", "error.type": ""})
	_ = srv.Close(within(t))
	seen.kept.Reset()
	if _, err := client.ListTools(within(t), &toolspb.ListToolsRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatalf("a closed server: %v", err)
	}
	has(t, seen.one(t, trace.SpanKindServer, "tools/list"), map[string]string{"rpc.response.status_code": "UNAVAILABLE", "error.type": "UNAVAILABLE"})
}

// The trace goes in the metadata, and its id in the contract's own field.
func TestTraceOnTheWire(t *testing.T) {
	var mu sync.Mutex
	var id string
	var md metadata.MD
	inv, _ := answering(t, plaintext(), func(ctx context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		id = request.TraceId
		md, _ = metadata.FromIncomingContext(ctx)
		return &toolspb.ToolCallResponse{Success: true}, nil
	})
	seen := newSpans(t)
	if _, err := inv.Invoke(telemetry.With(within(t), seen.Telemetry), &invoker.Call{}); err != nil {
		t.Fatal(err)
	}
	span := seen.one(t, trace.SpanKindClient, "tools/call tool").SpanContext
	if want := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"; strings.Join(md.Get("traceparent"),
		" ") != want || id != span.TraceID().String() {
		t.Errorf("traceparent %q, trace_id %q, want %q", md.Get("traceparent"), id, want)
	}
	if _, err := inv.Invoke(within(t), &invoker.Call{}); err != nil || id != "" || md.Get("traceparent") != nil {
		t.Errorf("without telemetry: traceparent %q, trace_id %q, %v", md.Get("traceparent"), id, err)
	}
}

// The server's log contains the trace of a call: from the metadata, or else from the
// field of the request, which makes no parent.
func TestTraceInTheLog(t *testing.T) {
	const theirs, ours = "0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111"
	seen := newSpans(t)
	core, lines := observer.New(zapcore.DebugLevel)
	client := toolspb.NewMcpToolServiceClient(raw(t, registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{
		Tools: []invoker.Invoker{ensembletest.Fails("fails", invoker.Failf(invoker.Conflict, "no"))}, Telemetry: seen.Telemetry, Logger: zap.New(core),
	}))))
	silent := toolspb.NewMcpToolServiceClient(raw(t, registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Logger: zap.New(core)}))))
	parent := "00-" + theirs + "-b7ad6b7169203331-01"
	for _, c := range []struct {
		client  toolspb.McpToolServiceClient
		parents []string
		field   string
		want    string // "new" is a trace of the server's own
	}{
		{client, []string{parent}, ours, theirs},
		{client, nil, ours, "new"},
		{client, []string{parent, parent}, "", "new"},
		{client, []string{"00-" + theirs}, "", "new"},
		{silent, nil, ours, ours},
		{silent, nil, "no id", ""},
		{silent, []string{parent}, "", ""},
	} {
		ctx := within(t)
		for _, p := range c.parents {
			ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", p)
		}
		seen.kept.Reset()
		if _, err := c.client.CallTool(ctx, &toolspb.ToolCallRequest{ToolName: "fails", TraceId: c.field}); err != nil {
			t.Fatal(err)
		}
		found := lines.FilterField(zap.String("event", "serve.call.failed")).TakeAll()
		lines.TakeAll()
		if len(found) != 1 {
			t.Fatalf("%d lines", len(found))
		}
		fields := found[0].ContextMap()
		got, _ := fields[telemetry.TraceField].(string)
		if c.want == "new" {
			span := seen.one(t, trace.SpanKindServer, "tools/call fails")
			c.want = span.SpanContext.TraceID().String()
			if span.Parent.IsValid() || c.want == ours || c.want == theirs {
				t.Errorf("%+v: the parent is %v", c, span.Parent)
			}
		}
		if got != c.want {
			t.Errorf("%q with %q: the line has %v", c.parents, c.field, fields)
		}
	}
}

// A call by the name of a Dapr application says so, by the names of the
// requirements, too.
func TestApplicationInSpans(t *testing.T) {
	clearDapr(t)
	at := newSidecar(t, "")
	t.Setenv("DAPR_GRPC_ENDPOINT", "http://"+at.address)
	seen := newSpans(t)
	ctx := telemetry.With(within(t), seen.Telemetry)
	connection, err := grpctool.Dapr("plantation-mcp", nil).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	if _, err := tool(t, connection, "echo").Invoke(ctx, &invoker.Call{Arguments: []byte(`{"text":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	has(t, seen.one(t, trace.SpanKindClient, "tools/call echo"), map[string]string{
		"mcp.app_id": "plantation-mcp", "mcp.tool_name": "echo", "rpc.method": grpctool.OriginalService + "/CallTool",
	})
}

// A Unix socket has no port, and its clients have no address.
func TestSpansOverUnixSockets(t *testing.T) {
	seen := newSpans(t)
	path := t.TempDir() + "/tools.sock"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	grpctool.NewServer(nil, &grpctool.ServerOptions{Telemetry: seen.Telemetry}).Register(srv)
	go func() { _ = srv.Serve(listener) }()
	defer srv.Stop()
	ctx := telemetry.With(within(t), seen.Telemetry)
	connection, err := grpctool.Source("unix:"+path, plaintext()).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	has(t, seen.one(t, trace.SpanKindClient, "tools/list"), map[string]string{"network.transport": "unix", "server.address": path, "server.port": ""})
	has(t, seen.one(t, trace.SpanKindServer, "tools/list"), map[string]string{"network.transport": "unix", "client.address": ""})
}

// MCP over gRPC is in the same trace through its own fields, and names its transport.
func TestSpansOfMCP(t *testing.T) {
	seen := newSpans(t)
	look := ensembletest.Returns("look", "seen")
	inner := server.New(nil, &server.Options{Tools: []invoker.Invoker{look}, Telemetry: seen.Telemetry})
	t.Cleanup(func() { _ = inner.Close(context.Background()) })
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{MCP: inner}))
	host, port, _ := net.SplitHostPort(address)
	ctx, root := seen.tracer.Start(telemetry.With(within(t), seen.Telemetry), "root")
	connection, err := grpctool.MCP(address, plaintext(), nil).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	if _, err := tool(t, connection, "look").Invoke(ctx, &invoker.Call{}); err != nil {
		t.Fatal(err)
	}
	client, srv := seen.one(t, trace.SpanKindClient, "tools/call look"), seen.one(t, trace.SpanKindServer, "tools/call look")
	if client.Parent.SpanID() != root.SpanContext().SpanID() || srv.Parent.SpanID() != client.SpanContext.SpanID() {
		t.Errorf("the parents are %v and %v", client.Parent, srv.Parent)
	}
	over := map[string]string{
		"network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "2", "rpc.system.name": "", "rpc.method": "",
	}
	has(t, client, over)
	has(t, srv, over)
	has(t, client, map[string]string{"server.address": host, "server.port": port})
	has(t, srv, map[string]string{"client.address": host})
}

// A call interrupted by the network behind a sidecar has a code and a message, and log
// and span contain the application, the tool, its arguments and the trace.
func TestBrokenCallIsSeen(t *testing.T) {
	clearDapr(t)
	var at *site
	service := &scripted{call: func(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		at.kill()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	plantation := raw(t, newSite(t, service.under(grpctool.OriginalService)).address)
	at = newSite(t, func() *grpc.Server { return sidecar.New("", map[string]*grpc.ClientConn{"plantation-mcp": plantation}) })
	t.Setenv("DAPR_GRPC_ENDPOINT", "http://"+at.address)
	core, lines := observer.New(zapcore.DebugLevel)
	seen := newSpans(t)
	ctx, root := seen.tracer.Start(telemetry.With(within(t), seen.Telemetry), "root")
	e := ensemble.New("farm", grpctool.Dapr("plantation-mcp", nil), &ensemble.Options{Logger: zap.New(core)})
	defer e.Close(context.Background())
	tools, err := e.Tools(ctx)
	if err != nil || len(tools) != 1 {
		t.Fatalf("%d tools: %v", len(tools), err)
	}
	_, err = tools[0].Invoke(ctx, &invoker.Call{ID: "c1", Arguments: []byte(`{"farmer_id":"WM-4521"}`)})
	failure := invoker.AsFailure(err)
	if failure == nil || failure.Code != invoker.OutcomeUnknown || failure.Message == "" {
		t.Fatalf("the call came to %v", err)
	}
	// The ensemble may notice the loss first: then it has its own words, and the span ends later.
	if err := e.Close(within(t)); err != nil {
		t.Error(err)
	}
	span := seen.one(t, trace.SpanKindClient, "tools/call tool")
	has(t, span, map[string]string{
		"mcp.app_id": "plantation-mcp", "mcp.tool_name": "tool", "error.type": "UNAVAILABLE", "rpc.response.status_code": "UNAVAILABLE",
	})
	if span.Status.Code != otelcodes.Error || !strings.HasPrefix(span.Status.Description, "The server, or the connection to it, failed.") ||
		len(span.Events) != 1 || span.Events[0].Name != "exception" {
		t.Errorf("the span has %v, %v", span.Status, span.Events)
	}
	found := lines.FilterField(zap.String("event", "mcp.call.failed")).All()
	if len(found) != 1 {
		t.Fatalf("%d lines", len(found))
	}
	for key, want := range map[string]string{
		"trace_id": root.SpanContext().TraceID().String(), "ensemble": "farm", "tool": "tool",
		"arguments": `{"farmer_id":"WM-4521"}`, "code": string(failure.Code), "error": string(failure.Code) + ": " + failure.Message,
	} {
		if got := found[0].ContextMap()[key]; got != want {
			t.Errorf("in the log %s is %v, want %q", key, got, want)
		}
	}
}
