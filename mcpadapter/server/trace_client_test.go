// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tracedVar names the file that the server process writes its spans to; setting
// it makes this test binary that process.
const tracedVar = "MCPADAPTER_TEST_SPANS"

// TestTracedProcess is not a test: it is the server of other tests.
func TestTracedProcess(t *testing.T) {
	path := os.Getenv(tracedVar)
	if path == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	for _, variable := range os.Environ() {              // not used for traces
		if name, _, _ := strings.Cut(strings.ToUpper(variable), "="); name == "TRACEPARENT" || name == "TRACESTATE" || name == "BAGGAGE" {
			os.Exit(7)
		}
	}
	out, err := os.Create(path)
	if err != nil {
		os.Exit(8)
	}
	w := mcptest.RecordSpans(telemetry.Options{})
	w.Output = out
	if err := tracedServer(t, w, nil).Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// tracedServer is a server with tools that work, and fail, and one that is
// another server's; and a prompt. heard gets the _meta of the calls of that one.
func tracedServer(t *testing.T, w *mcptest.Recorder, heard chan<- map[string]any) *server.Server {
	t.Helper()
	fail := rawTool(t, invoker.Definition{Name: "fail"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, errors.New("the secret cause")
	})
	behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
	behind.AddTool(&mcp.Tool{Name: "far", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if heard != nil {
				heard <- req.Params.Meta
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "far away"}}}, nil
		})
	library := local.Library{Prompts: []local.Prompt{{
		Prompt: ensemble.Prompt{Name: "greet"},
		Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
			return &ensemble.Messages{Messages: []ensemble.PromptMessage{{Role: "user", Content: canister.Texts("Greet.")}}}, nil
		},
	}}}.Source(adder(t), fail)
	roster, err := ensemble.NewRoster(ensemble.New("local", library, nil),
		ensemble.New("behind", mcpadapter.InMemory(behind, &mcpadapter.ClientOptions{Server: "behind"}), nil))
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(roster, &server.Options{OwnNames: true, Telemetry: w.Telemetry})
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(context.Background()), roster.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// TestTrace: one trace extends from the client into the server, and through it into the
// server behind it, over each transport and protocol.
func TestTrace(t *testing.T) {
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		t.Run("stdio/"+protocol, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spans")
			source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestTracedProcess$"}, &mcpadapter.StdioOptions{
				ClientOptions: mcpadapter.ClientOptions{Server: "served", Protocol: protocol},
				Environment:   map[string]string{tracedVar: path, "GORACE": "atexit_sleep_ms=0"},
			})
			client, root := tracedWork(t, source)
			checkTrace(t, protocol, root, client, readSpans(t, path), map[string]any{"network.transport": "pipe", "network.protocol.name": nil})
		})
		t.Run("http/"+protocol, func(t *testing.T) {
			w, heard := mcptest.RecordSpans(telemetry.Options{}), make(chan map[string]any, 1)
			srv := httptest.NewServer(tracedServer(t, w, heard).Handler())
			defer srv.Close()
			source := mcpadapter.HTTP(srv.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Server: "served", Protocol: protocol}})
			client, root := tracedWork(t, source)
			served := w.Spans(t)
			checkTrace(t, protocol, root, client, served, map[string]any{"network.transport": "tcp", "network.protocol.name": "http"})
			at, _ := url.Parse(srv.URL)
			mcptest.OneSpan(t, client, "client", "tools/call add").Want(t, map[string]any{"server.address": at.Hostname(), "server.port": atoi(at.Port())})
			if a := mcptest.OneSpan(t, served, "server", "tools/call add").Attributes; a["client.address"] != "127.0.0.1" ||
				mcptest.Number(a["client.port"]) < 1 {
				t.Errorf("the client is at %v:%v", a["client.address"], a["client.port"])
			}
			far := mcptest.OneSpan(t, served, "client", "tools/call far")
			if traceID, spanID := mcptest.ParseTraceparent(mcptest.Await(t, "the call behind",
				heard)["traceparent"].(string)); traceID != far.Trace || spanID != far.ID {
				t.Errorf("the server behind heard of %s %s, want %s %s", traceID, spanID, far.Trace, far.ID)
			}
		})
	}
}

// tracedWork does one of each, as a part of a root span.
func tracedWork(t *testing.T, source ensemble.Source) (spans []mcptest.Span, root mcptest.Span) {
	t.Helper()
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, span := w.StartRoot(t)
	c, err := source.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := c.List(ctx)
	if err != nil || len(listing.Invokers) != 3 {
		t.Fatalf("%d tools, %v", len(listing.Invokers), err)
	}
	for _, tool := range listing.Invokers {
		_, _ = tool.Invoke(ctx, mcptest.RawCall(`{"a":1,"b":2}`))
	}
	library := c.(ensemble.Library)
	prompts, err := library.Prompts(ctx)
	if err != nil || len(prompts) != 1 {
		t.Fatalf("%d prompts, %v", len(prompts), err)
	}
	if _, err := library.Get(ctx, prompts[0].Name, nil); err != nil {
		t.Error(err)
	}
	if _, err := library.Read(ctx, "file:///nowhere"); err == nil {
		t.Error("there is a file nowhere")
	}
	if err := c.(ensemble.Pinger).Ping(ctx); err != nil {
		t.Error(err)
	}
	span.End()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	spans = w.Spans(t)
	if got := w.Durations(t, "mcp.client.session.duration"); len(got) != 1 || got[0]["error.type"] != "" || got[0]["mcp.protocol.version"] == "" {
		t.Errorf("sessions of the client: %v", got)
	}
	return spans, mcptest.OneSpan(t, spans, "internal", "root")
}

func readSpans(t *testing.T, path string) (spans []mcptest.Span) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var s mcptest.Span
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		spans = append(spans, s)
	}
	return spans
}

func checkTrace(t *testing.T, protocol string, root mcptest.Span, client, served []mcptest.Span, over map[string]any) {
	t.Helper()
	shake := "initialize"
	if protocol >= "2026-07-28" {
		shake = "server/discover"
	}
	for _, name := range []string{
		shake, "tools/list", "tools/call add", "tools/call fail", "tools/call far", "prompts/list", "prompts/get greet", "resources/read",
	} {
		at := mcptest.OneSpan(t, client, "client", name)
		if at.Trace != root.Trace || at.Parent != root.ID {
			t.Errorf("%s of the client is in the trace %s, a child of %s", name, at.Trace, at.Parent)
		}
		method, _, _ := strings.Cut(name, " ")
		common := map[string]any{"mcp.method.name": method, "mcp.protocol.version": protocol}
		for key, value := range over {
			common[key] = value
		}
		at.Want(t, common)
		at.Want(t, map[string]any{"consort.ensemble": "served"})
		there := mcptest.ChildOf(t, served, at)
		there.Want(t, common)
		if there.Kind != "server" || there.Trace != root.Trace || !there.Remote {
			t.Errorf("%s of the server: %+v", name, there)
		}
		if there.Name != name {
			t.Errorf("the server calls %q %q", name, there.Name)
		}
		for _, key := range []string{"jsonrpc.request.id", "mcp.session.id", "gen_ai.tool.name", "gen_ai.operation.name"} {
			if at.Attributes[key] != there.Attributes[key] && name != "initialize" {
				t.Errorf("%s: %s is %v for the client and %v for the server", name, key, at.Attributes[key], there.Attributes[key])
			}
		}
		if at.Attributes["jsonrpc.request.id"] == nil {
			t.Errorf("%s has no identity", name)
		}
		if hasSession := at.Attributes["mcp.session.id"] != nil; hasSession != (protocol < "2026-07-28" &&
			over["network.protocol.name"] == "http" && name != shake) {
			t.Errorf("%s: has the identity of a session: %v", name, hasSession)
		}
	}
	checkCalls(t, protocol, client, served)
	if pings := append(mcptest.SpansNamed(client, "client", "ping"),
		mcptest.SpansNamed(served, "server", "ping")...); len(pings) > 0 || len(mcptest.SpansNamed(client, "client", shake)) != 1 {
		t.Errorf("pings have spans: %v", pings)
	}
}

// checkCalls checks the spans of calls, refusals and prompts.
func checkCalls(t *testing.T, protocol string, client, served []mcptest.Span) {
	t.Helper()
	add := mcptest.OneSpan(t, client, "client", "tools/call add")
	add.Want(t, map[string]any{
		"gen_ai.tool.name": "add", "gen_ai.operation.name": "execute_tool", "consort.alias": "mcp.call", "error.type": nil,
		"gen_ai.tool.call.arguments": nil, "gen_ai.tool.call.result": nil,
	})
	mcptest.OneSpan(t, client, "client", "tools/list").Want(t,
		map[string]any{"consort.tools.count": 3, "consort.tools.aside": 0, "consort.alias": "mcp.tools.list"})
	for _, s := range append(mcptest.SpansNamed(client, "client", "tools/call fail"), mcptest.SpansNamed(served, "server", "tools/call fail")...) {
		s.Want(t, map[string]any{"error.type": "tool_error", "rpc.response.status_code": nil})
		if s.Status != "error" || strings.Contains(s.Message, "secret") {
			t.Errorf("a failed call: %s %q", s.Status, s.Message)
		}
	}
	code := "-32002"
	if protocol >= "2026-07-28" {
		code = "-32602"
	}
	at, there := mcptest.OneSpan(t, client, "client", "resources/read"), mcptest.OneSpan(t, served, "server", "resources/read")
	at.Want(t, map[string]any{"error.type": code, "rpc.response.status_code": code, "mcp.resource.uri": "file:///nowhere"})
	there.Want(t, map[string]any{"error.type": nil, "rpc.response.status_code": code, "mcp.resource.uri": "file:///nowhere"})
	if at.Status != "error" || there.Status != "" {
		t.Errorf("the client's fault: %q for it, %q for the server", at.Status, there.Status)
	}
	if far := mcptest.OneSpan(t, served, "client", "tools/call far"); far.Parent != mcptest.OneSpan(t, served, "server", "tools/call far").ID {
		t.Errorf("the call to the server behind is a child of %s", far.Parent)
	}
	mcptest.OneSpan(t, served, "server", "prompts/get greet").Want(t, map[string]any{"gen_ai.prompt.name": "greet"})
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// TestTraceContent: arguments and results are recorded only on request.
func TestTraceContent(t *testing.T) {
	for _, content := range []bool{false, true} {
		client, srv := mcptest.RecordSpans(telemetry.Options{Content: content}), mcptest.RecordSpans(telemetry.Options{Content: content})
		listener := httptest.NewServer(tracedServer(t, srv, nil).Handler())
		t.Cleanup(listener.Close) // after the connection was closed
		ctx, root := client.StartRoot(t)
		add := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(listener.URL, nil)), "add")
		if _, err := add.Invoke(ctx, mcptest.RawCall(`{"a":1,"b":2}`)); err != nil {
			t.Fatal(err)
		}
		root.End()
		for _, s := range []mcptest.Span{
			mcptest.OneSpan(t, client.Spans(t), "client", "tools/call add"), mcptest.OneSpan(t, srv.Spans(t), "server", "tools/call add"),
		} {
			arguments, _ := s.Attributes["gen_ai.tool.call.arguments"].(string)
			result, _ := s.Attributes["gen_ai.tool.call.result"].(string)
			if has := strings.Contains(arguments, `"b":2`); has != content || strings.Contains(result, "3") != content {
				t.Errorf("%s, wanted: %v: arguments %q, result %q", s.Kind, content, arguments, result)
			}
		}
	}
}

// TestTraceConcurrently: calls side by side have spans of their own.
func TestTraceConcurrently(t *testing.T) {
	srv := mcptest.RecordSpans(telemetry.Options{})
	listener := httptest.NewServer(tracedServer(t, srv, nil).Handler())
	t.Cleanup(listener.Close) // after the connection was closed
	client := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := client.StartRoot(t)
	add := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(listener.URL, nil)), "add")
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if _, err := add.Invoke(ctx, mcptest.RawCall(fmt.Sprintf(`{"a":%d,"b":2}`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	root.End()
	calls, served := mcptest.SpansNamed(client.Spans(t), "client", "tools/call add"), srv.Spans(t)
	ids := map[any]bool{}
	for _, call := range calls {
		ids[call.Attributes["jsonrpc.request.id"]] = true
		if there := mcptest.ChildOf(t, served, call); there.Attributes["jsonrpc.request.id"] != call.Attributes["jsonrpc.request.id"] {
			t.Error("the spans of two calls were mixed up")
		}
	}
	if len(ids) != 32 {
		t.Errorf("%d calls have spans", len(ids))
	}
}
