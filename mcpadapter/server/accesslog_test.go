// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// accessLines returns the lines of the access log, sorted and without their durations and
// sizes, and checks that each has them.
func accessLines(t *testing.T, logged *observer.ObservedLogs) (lines []map[string]any) {
	t.Helper()
	for _, entry := range logged.FilterField(zap.String("event", "serve.request.ended")).All() {
		line := entry.ContextMap()
		size, _ := line["bytes"].(int64)
		if _, ok := line["took"]; !ok || size == 0 {
			t.Errorf("without a duration or a size: %v", line)
		}
		for _, name := range []string{"event", "took", "bytes"} {
			delete(line, name)
		}
		lines = append(lines, line)
	}
	return sorted(lines)
}

// sorted returns the lines in an order of their own: a line is written after the answer, and
// so after the line of a later request at times.
func sorted(lines []map[string]any) []map[string]any {
	slices.SortFunc(lines, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return lines
}

// Each request over HTTP has one line: the client, the method, the tool, the outcome. No
// line has a token or an argument.
func TestAccessLogOverHTTP(t *testing.T) {
	core, logged := observer.New(zap.DebugLevel)
	fails := rawTool(t, invoker.Definition{Name: "fails"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{}, invoker.Failf(invoker.Denied, "no")
	})
	spans := mcptest.RecordSpans(telemetry.Options{})
	srv := newServer(t, &server.Options{
		Logger: zap.New(core), AccessLog: true, OwnNames: true, Telemetry: spans.Telemetry,
		Tokens: []server.BearerToken{{Token: "the-token-of-ada", Name: "laptop"}},
	}, adder(t), fails)
	web := httptest.NewServer(srv.Handler())
	statuses := []int{}
	send := func(token, method, tool, params string) {
		header := http.Header{"Authorization": {"Bearer " + token}}
		if tool != "" {
			header.Set("Mcp-Name", tool)
			params = fmt.Sprintf(`"name":%q,"arguments":{"a":47114711471147,"b":2},`, tool) + params
		}
		status, _ := post(t, web.URL, method, params+rawMeta(""), header)
		statuses = append(statuses, status)
	}
	send("the-token-of-ada", "tools/list", "", "")
	send("the-token-of-ada", "tools/call", "add", "")
	send("the-token-of-ada", "tools/call", "fails", "")
	send("the-token-of-ada", "tools/call", "made-up", "")
	send("the-token-of-eve", "tools/call", "add", "")
	web.Close() // waits for the handlers
	for _, set := range spans.Durations(t, "mcp.server.operation.duration") {
		if set["consort.client.name"] != "laptop" {
			t.Errorf("a measurement is of the client %q", set["consort.client.name"])
		}
	}
	lines := accessLines(t, logged)
	traced := 0
	for _, line := range lines {
		if line["trace_id"] != nil {
			traced++
		}
		delete(line, "trace_id")
		delete(line, "span_id")
	}
	want := []map[string]any{
		{"method": "tools/list", "client_name": "laptop"},
		{"method": "tools/call", "client_name": "laptop", "tool": "add"},
		{"method": "tools/call", "client_name": "laptop", "tool": "fails", "code": "DENIED"},
		{"method": "tools/call", "client_name": "laptop", "tool": "made-up", "code": "-32602"},
		{"method": "POST"},
	}
	for i, line := range want {
		line["transport"], line["from"], line["status"] = "http", "127.0.0.1", int64(statuses[i])
	}
	if !reflect.DeepEqual(lines, sorted(want)) {
		t.Errorf("the lines are\n%v\nwant\n%v", lines, want)
	}
	if statuses[1] != 200 || statuses[4] != 401 || traced != 4 {
		t.Errorf("the statuses are %d, and %d lines have a trace", statuses, traced)
	}
	for _, entry := range logged.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "the-token-of") || strings.Contains(text, "47114711471147") {
			t.Errorf("a line reveals a token or an argument: %s", text)
		}
	}
}

// The requests of a stream have their lines too, also those that get no answer.
func TestAccessLogOverStreams(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	begun, ended := make(chan struct{}), make(chan struct{})
	waits := rawTool(t, invoker.Definition{Name: "waits"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		defer close(ended)
		close(begun)
		<-ctx.Done()
		return invoker.Output{}, ctx.Err()
	})
	srv := newServer(t, &server.Options{Logger: zap.New(core), AccessLog: true, OwnNames: true}, adder(t), waits)
	session := connectStdio(t, srv, mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil), "2025-11-25")
	if _, err := session.CallTool(mcptest.Within(t), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 1, "b": 2}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(mcptest.Within(t))
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: "waits"})
	}()
	mcptest.Await(t, "the call", begun)
	cancel()
	<-called
	mcptest.Await(t, "the end of the call", ended) // the SDK's client may send the cancellation after CallTool
	_ = session.Close()
	if err := srv.Close(mcptest.Within(t)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range logged.FilterField(zap.String("event", "serve.request.ended")).All() {
		line := entry.ContextMap()
		got = append(got, fmt.Sprintf("%v %v %v", line["transport"], line["method"], line["tool"]))
	}
	slices.Sort(got)
	if want := []string{"stdio initialize <nil>", "stdio tools/call add", "stdio tools/call waits"}; !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

// Without the option, and at a level above info, there are no lines.
func TestNoAccessLog(t *testing.T) {
	for name, options := range map[string]*server.Options{"off": {OwnNames: true}, "above info": {OwnNames: true, AccessLog: true}} {
		level := zap.InfoLevel
		if options.AccessLog {
			level = zap.WarnLevel
		}
		core, logged := observer.New(level)
		options.Logger = zap.New(core)
		web := httptest.NewServer(newServer(t, options, adder(t)).Handler())
		post(t, web.URL, "tools/call", addCall+rawMeta(""), nil)
		web.Close()
		if n := logged.FilterField(zap.String("event", "serve.request.ended")).Len(); n != 0 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

// A server without tools of its own has no ensemble for them in its log.
func TestNoOwnToolsInTheLog(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	for _, tools := range [][]invoker.Invoker{nil, {adder(t)}} {
		srv := server.New(nil, &server.Options{Name: "desk", Logger: zap.New(core), Tools: tools})
		session := connectStdio(t, srv, mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil), "2025-11-25")
		if list, err := session.ListTools(mcptest.Within(t), nil); err != nil || len(list.Tools) != len(tools) {
			t.Fatal(list, err)
		}
		_ = session.Close()
		if err := srv.Close(mcptest.Within(t)); err != nil {
			t.Fatal(err)
		}
		connected := logged.FilterField(zap.String("event", "ensemble.connected")).FilterField(zap.String("ensemble", "desk")).Len()
		if connected != len(tools) {
			t.Errorf("with %d tools of its own: %d lines that its ensemble is connected", len(tools), connected)
		}
	}
}
