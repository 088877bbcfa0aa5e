// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
)

// oddArguments would not survive a decoder: they stand twice, out of order, and
// with numbers that have more than one form.
const oddArguments = `{"z":1.0e2,"a":12345678901234567890,"_meta":{"traceparent":"mine"},"text":"<&>"}`

// onTheWire makes a session with a scripted server, and returns what it received.
func onTheWire(t *testing.T, ctx context.Context, options mcpadapter.HTTPOptions) *scripted {
	t.Helper()
	s := newScripted(t, func(w http.ResponseWriter, _ *http.Request, m message) bool {
		switch m.Method {
		case "tools/call":
			reply(w, m, `{"content":[{"type":"text","text":"done"}]}`)
		case "ping":
			reply(w, m, `{}`)
		default:
			return false
		}
		return true
	})
	options.Protocol = "2025-11-25"
	c, err := mcpadapter.HTTP(s.URL, &options).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	call := rawCall(oddArguments)
	call.ID = "the-call"
	if _, err := listing.Invokers[0].Invoke(ctx, call); err != nil {
		t.Fatal(err)
	}
	if err := c.(ensemble.Pinger).Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTraceOnTheWire: the context of each span stands in _meta and in the header
// of its request, and nothing else changes.
func TestTraceOnTheWire(t *testing.T) {
	w := watch(telemetry.Options{})
	ctx, root := w.root(t)
	watched := onTheWire(t, ctx, mcpadapter.HTTPOptions{})
	root.End()
	plain := onTheWire(t, within(t), mcpadapter.HTTPOptions{})
	spans := w.all(t)
	for _, method := range []string{"initialize", "tools/list", "tools/call"} {
		name := method
		if method == "tools/call" {
			name += " read"
		}
		m, before := watched.received(method)[0], plain.received(method)[0]
		var params struct {
			Meta map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		span := theSpan(t, spans, "client", name)
		want := "00-" + span.Trace + "-" + span.Span + "-01"
		if params.Meta["traceparent"] != want || m.Header.Get("Traceparent") != want {
			t.Errorf("%s says %v and %q, want %s", method, params.Meta["traceparent"], m.Header.Get("Traceparent"), want)
		}
		if params.Meta["tracestate"] != nil || params.Meta["baggage"] != nil {
			t.Errorf("%s: %v", method, params.Meta)
		}
		added := `"traceparent":"` + want + `"`
		text := strings.Replace(string(m.Params), added+",", "", 1)
		for _, alone := range []string{`"_meta":{` + added + `},`, `"_meta":{` + added + `}`} {
			text = strings.Replace(text, alone, "", 1)
		}
		if text != string(before.Params) {
			t.Errorf("%s became\n%s, was\n%s", method, text, before.Params)
		}
		theSpan(t, spans, "client", name).wants(t, map[string]any{"jsonrpc.request.id": string(m.ID)})
	}
	for _, m := range append(watched.received("ping"), watched.received("notifications/initialized")...) {
		if m.Header.Get("Traceparent") != "" || strings.Contains(string(m.Params), "traceparent") {
			t.Errorf("%s has %s, %q", m.Method, m.Params, m.Header.Get("Traceparent"))
		}
	}
	for _, m := range plain.got {
		if m.Header.Get("Traceparent") != "" || strings.Contains(strings.Replace(string(m.Params), oddArguments, "", 1), "traceparent") {
			t.Errorf("%s says of a trace when nobody watches: %s", m.Method, m.Params)
		}
	}
	if call := watched.received("tools/call")[0]; !strings.Contains(string(call.Params), oddArguments) {
		t.Errorf("the arguments became %s", call.Params)
	}
}

// TestTraceHeaders: the embedder's own headers win, and a redirect within the
// origin keeps what the request had.
func TestTraceHeaders(t *testing.T) {
	w := watch(telemetry.Options{})
	ctx, _ := w.root(t)
	s := onTheWire(t, ctx, mcpadapter.HTTPOptions{Headers: map[string]string{"Traceparent": "mine"}})
	if got := s.received("tools/call")[0].Header.Values("Traceparent"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("the header is %q", got)
	}
	elsewhere := newScripted(t, nil)
	for _, to := range []string{"/there", elsewhere.URL} {
		s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
			if m.Method != "tools/list" || r.URL.Path == "/there" {
				return false
			}
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return true
		})
		c := openScripted(t, s)
		_, err := c.List(ctx)
		got := s.received("tools/list")
		switch {
		case to == "/there" && (err != nil || len(got) != 2 || got[0].Header.Get("Traceparent") != got[1].Header.Get("Traceparent")):
			t.Errorf("a redirect: %v, %v", got, err)
		case to != "/there" && (err == nil || len(elsewhere.got) != 0):
			t.Errorf("the other origin was told of it: %v, %v", elsewhere.got, err)
		}
	}
}

// TestTraceEndings: each way in which a call can end has its name, and no span
// stays open.
func TestTraceEndings(t *testing.T) {
	cases := map[string]struct {
		on     func(w http.ResponseWriter, m message)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		kind   string
		status any
	}{
		"internal error": {on: func(w http.ResponseWriter, m message) { replyError(w, m, -32603, "it broke") }, kind: "-32603", status: "-32603"},
		"invalid":        {on: func(w http.ResponseWriter, m message) { replyError(w, m, -32602, "no such tool") }, kind: "-32602", status: "-32602"},
		"tool error": {on: func(w http.ResponseWriter, m message) {
			reply(w, m, `{"isError":true,"content":[{"type":"text","text":"my secret"}]}`)
		}, kind: "tool_error"},
		"no result":       {on: func(w http.ResponseWriter, m message) { reply(w, m, `[]`) }, kind: "PROTOCOL"},
		"busy":            {on: func(w http.ResponseWriter, _ message) { w.WriteHeader(http.StatusServiceUnavailable) }, kind: "UNAVAILABLE"},
		"in trouble":      {on: func(w http.ResponseWriter, _ message) { w.WriteHeader(http.StatusBadGateway) }, kind: "OUTCOME_UNKNOWN"},
		"not for you":     {on: func(w http.ResponseWriter, _ message) { w.WriteHeader(http.StatusForbidden) }, kind: "UNAUTHORIZED"},
		"too late":        {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 1) }, kind: ""},
		"session is gone": {on: func(w http.ResponseWriter, _ message) { w.WriteHeader(http.StatusNotFound) }, kind: "UNAVAILABLE"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t, func(w http.ResponseWriter, _ *http.Request, m message) bool {
				if m.Method == "tools/call" {
					test.on(w, m)
				}
				return m.Method == "tools/call"
			})
			w := watch(telemetry.Options{})
			ctx, root := w.root(t)
			write := tool(t, openScripted(t, s), "write")
			if test.ctx != nil {
				var cancel context.CancelFunc
				ctx, cancel = test.ctx(ctx)
				defer cancel()
			}
			_, err := write.Invoke(ctx, rawCall(`{}`))
			if err == nil {
				t.Fatal("the call succeeded")
			}
			root.End()
			calls := named(w.all(t), "client", "tools/call write")
			if test.kind == "" { // it never left
				if len(calls) != 0 {
					t.Errorf("%v", calls)
				}
				return
			}
			calls[0].wants(t, map[string]any{"error.type": test.kind, "rpc.response.status_code": test.status})
			if calls[0].Status != "error" || strings.Contains(calls[0].Said, "secret") {
				t.Errorf("the status is %q %q", calls[0].Status, calls[0].Said)
			}
		})
	}
}

// TestTraceTimeout: a call that is given up in flight ends its span, though
// nothing comes of it.
func TestTraceTimeout(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
		if m.Method != "tools/call" {
			return false
		}
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	defer close(release)
	w := watch(telemetry.Options{})
	ctx, root := w.root(t)
	write := tool(t, openScripted(t, s), "write")
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-asked
		cancel()
	}()
	if _, err := write.Invoke(ctx, rawCall(`{}`)); code(err) != invoker.Canceled {
		t.Errorf("the call: %v", err)
	}
	root.End()
	theSpan(t, w.all(t), "client", "tools/call write").wants(t, map[string]any{"error.type": "CANCELED"})
}

// TestTraceContent: what is asked and answered is recorded on request alone.
func TestTraceContent(t *testing.T) {
	for _, content := range []bool{false, true} {
		client, server := watch(telemetry.Options{Content: content}), watch(telemetry.Options{Content: content})
		listener := httptest.NewServer(tracedServer(t, server, nil).Handler())
		t.Cleanup(listener.Close) // after that of the connection
		ctx, root := client.root(t)
		add := tool(t, open(t, mcpadapter.HTTP(listener.URL, nil)), "add")
		if _, err := add.Invoke(ctx, rawCall(`{"a":1,"b":2}`)); err != nil {
			t.Fatal(err)
		}
		root.End()
		for _, s := range []seen{theSpan(t, client.all(t), "client", "tools/call add"), theSpan(t, server.all(t), "server", "tools/call add")} {
			arguments, _ := s.Attributes["gen_ai.tool.call.arguments"].(string)
			result, _ := s.Attributes["gen_ai.tool.call.result"].(string)
			if has := strings.Contains(arguments, `"b":2`); has != content || strings.Contains(result, "3") != content {
				t.Errorf("%s, wanted: %v: arguments %q, result %q", s.Kind, content, arguments, result)
			}
		}
	}
}

// TestTraceOfLostSession: a session that breaks says so.
func TestTraceOfLostSession(t *testing.T) {
	s := newScripted(t, func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", "the-session")
			return false
		}
		if m.Method == "tools/call" {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	})
	w := watch(telemetry.Options{})
	ctx, root := w.root(t)
	c, err := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25", Server: "lost"}}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listing.Invokers[0].Invoke(ctx, rawCall(`{}`)); err == nil {
		t.Error("the call succeeded")
	}
	await(t, "the loss", c.Lost())
	root.End()
	if got := w.measured(t, "mcp.client.session.duration"); len(got) != 1 || got[0]["error.type"] != "UNAVAILABLE" || got[0]["server.address"] != "127.0.0.1" {
		t.Errorf("sessions: %v", got)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	theSpan(t, w.all(t), "client", "tools/list").wants(t, map[string]any{"mcp.session.id": "the-session"})
	if got := w.measured(t, "mcp.client.session.duration"); len(got) != 1 {
		t.Errorf("sessions: %v", got)
	}
}

// TestTraceOfHandshakes: an attempt that fails ends its span, and one that is
// refused says how.
func TestTraceOfHandshakes(t *testing.T) {
	s := newScripted(t, nil) // it knows the older protocol alone
	w := watch(telemetry.Options{})
	ctx, root := w.root(t)
	c, err := mcpadapter.HTTP(s.URL, nil).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	s.Close()
	if _, err := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}).Open(ctx); err == nil {
		t.Error("a closed server answers")
	}
	root.End()
	spans := w.all(t)
	theSpan(t, spans, "client", "server/discover").wants(t, map[string]any{"error.type": "PROTOCOL"}) // it said 202
	shakes := named(spans, "client", "initialize")
	if len(shakes) != 2 {
		t.Fatalf("%s", namesOf(spans))
	}
	shakes[0].wants(t, map[string]any{"mcp.protocol.version": "2025-11-25", "error.type": nil})
	shakes[1].wants(t, map[string]any{"error.type": "UNAVAILABLE"})
	if got := w.measured(t, "mcp.client.session.duration"); len(got) != 1 {
		t.Errorf("sessions: %v", got)
	}
}

// TestTraceConcurrently: calls side by side have spans of their own.
func TestTraceConcurrently(t *testing.T) {
	server := watch(telemetry.Options{})
	listener := httptest.NewServer(tracedServer(t, server, nil).Handler())
	t.Cleanup(listener.Close) // after that of the connection
	client := watch(telemetry.Options{})
	ctx, root := client.root(t)
	add := tool(t, open(t, mcpadapter.HTTP(listener.URL, nil)), "add")
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if _, err := add.Invoke(ctx, rawCall(fmt.Sprintf(`{"a":%d,"b":2}`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	root.End()
	calls, served := named(client.all(t), "client", "tools/call add"), server.all(t)
	ids := map[any]bool{}
	for _, call := range calls {
		ids[call.Attributes["jsonrpc.request.id"]] = true
		if there := childOf(t, served, call); there.Attributes["jsonrpc.request.id"] != call.Attributes["jsonrpc.request.id"] {
			t.Error("the spans of two calls were mixed up")
		}
	}
	if len(ids) != 32 {
		t.Errorf("%d calls have spans", len(ids))
	}
}
