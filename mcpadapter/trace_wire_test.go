// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
)

// oddArguments would not survive a decoder: they stand twice, out of order, and
// with numbers that have more than one form.
const oddArguments = `{"z":1.0e2,"a":12345678901234567890,"_meta":{"traceparent":"mine"},"text":"<&>"}`

// onTheWire runs a session with a scripted server, and returns the messages that the
// server received.
func onTheWire(t *testing.T, ctx context.Context, options mcpadapter.HTTPOptions) *mcptest.Scripted {
	t.Helper()
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "tools/call":
			mcptest.Reply(w, m, `{"content":[{"type":"text","text":"done"}]}`)
		case "ping":
			mcptest.Reply(w, m, `{}`)
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
	call := mcptest.RawCall(oddArguments)
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
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := w.StartRoot(t)
	watched := onTheWire(t, ctx, mcpadapter.HTTPOptions{})
	root.End()
	plain := onTheWire(t, mcptest.Within(t), mcpadapter.HTTPOptions{})
	spans := w.Spans(t)
	for _, method := range []string{"initialize", "tools/list", "tools/call"} {
		name := method
		if method == "tools/call" {
			name += " read"
		}
		m, before := watched.Received(method)[0], plain.Received(method)[0]
		var params struct {
			Meta map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		span := mcptest.OneSpan(t, spans, "client", name)
		want := "00-" + span.Trace + "-" + span.ID + "-01"
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
		mcptest.OneSpan(t, spans, "client", name).Want(t, map[string]any{"jsonrpc.request.id": string(m.ID)})
	}
	for _, m := range append(watched.Received("ping"), watched.Received("notifications/initialized")...) {
		if m.Header.Get("Traceparent") != "" || strings.Contains(string(m.Params), "traceparent") {
			t.Errorf("%s has %s, %q", m.Method, m.Params, m.Header.Get("Traceparent"))
		}
	}
	for _, m := range plain.Received("") {
		if m.Header.Get("Traceparent") != "" || strings.Contains(strings.Replace(string(m.Params), oddArguments, "", 1), "traceparent") {
			t.Errorf("%s says of a trace when nobody watches: %s", m.Method, m.Params)
		}
	}
	if call := watched.Received("tools/call")[0]; !strings.Contains(string(call.Params), oddArguments) {
		t.Errorf("the arguments became %s", call.Params)
	}
}

// TestTraceHeaders: the embedder's headers have priority, and a redirect within the
// origin keeps the headers of the request.
func TestTraceHeaders(t *testing.T) {
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, _ := w.StartRoot(t)
	s := onTheWire(t, ctx, mcpadapter.HTTPOptions{Headers: map[string]string{"Traceparent": "mine"}})
	if got := s.Received("tools/call")[0].Header.Values("Traceparent"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("the header is %q", got)
	}
	elsewhere := mcptest.NewScripted(t, nil)
	for _, to := range []string{"/there", elsewhere.URL} {
		s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
			if m.Method != "tools/list" || r.URL.Path == "/there" {
				return false
			}
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return true
		})
		c := openScripted(t, s)
		_, err := c.List(ctx)
		got := s.Received("tools/list")
		switch {
		case to == "/there" && (err != nil || len(got) != 2 || got[0].Header.Get("Traceparent") != got[1].Header.Get("Traceparent")):
			t.Errorf("a redirect: %v, %v", got, err)
		case to != "/there" && (err == nil || len(elsewhere.Received("")) != 0):
			t.Errorf("the other origin was told of it: %v, %v", elsewhere.Received(""), err)
		}
	}
}

// TestTraceEndings: each outcome of a call has a name, and every span ends.
func TestTraceEndings(t *testing.T) {
	cases := map[string]struct {
		on     func(w http.ResponseWriter, m mcptest.Message)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		kind   string
		status any
	}{
		"internal error": {
			on: func(w http.ResponseWriter, m mcptest.Message) { mcptest.ReplyError(w, m, -32603, "it broke") }, kind: "-32603", status: "-32603",
		},
		"invalid": {on: func(w http.ResponseWriter, m mcptest.Message) { mcptest.ReplyError(w, m, -32602, "no such tool") }, kind: "-32602", status: "-32602"},
		"tool error": {on: func(w http.ResponseWriter, m mcptest.Message) {
			mcptest.Reply(w, m, `{"isError":true,"content":[{"type":"text","text":"my secret"}]}`)
		}, kind: "tool_error"},
		"no result":       {on: func(w http.ResponseWriter, m mcptest.Message) { mcptest.Reply(w, m, `[]`) }, kind: "PROTOCOL"},
		"busy":            {on: func(w http.ResponseWriter, _ mcptest.Message) { w.WriteHeader(http.StatusServiceUnavailable) }, kind: "UNAVAILABLE"},
		"in trouble":      {on: func(w http.ResponseWriter, _ mcptest.Message) { w.WriteHeader(http.StatusBadGateway) }, kind: "OUTCOME_UNKNOWN"},
		"not for you":     {on: func(w http.ResponseWriter, _ mcptest.Message) { w.WriteHeader(http.StatusForbidden) }, kind: "UNAUTHORIZED"},
		"too late":        {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 1) }, kind: ""},
		"session is gone": {on: func(w http.ResponseWriter, _ mcptest.Message) { w.WriteHeader(http.StatusNotFound) }, kind: "UNAVAILABLE"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method == "tools/call" {
					test.on(w, m)
				}
				return m.Method == "tools/call"
			})
			w := mcptest.RecordSpans(telemetry.Options{})
			ctx, root := w.StartRoot(t)
			write := mcptest.Tool(t, openScripted(t, s), "write")
			if test.ctx != nil {
				var cancel context.CancelFunc
				ctx, cancel = test.ctx(ctx)
				defer cancel()
			}
			_, err := write.Invoke(ctx, mcptest.RawCall(`{}`))
			if err == nil {
				t.Fatal("the call succeeded")
			}
			root.End()
			calls := mcptest.SpansNamed(w.Spans(t), "client", "tools/call write")
			if test.kind == "" { // it never left
				if len(calls) != 0 {
					t.Errorf("%v", calls)
				}
				return
			}
			calls[0].Want(t, map[string]any{"error.type": test.kind, "rpc.response.status_code": test.status})
			if calls[0].Status != "error" || strings.Contains(calls[0].Message, "secret") {
				t.Errorf("the status is %q %q", calls[0].Status, calls[0].Message)
			}
		})
	}
}

// TestTraceTimeout: a call that is given up in flight ends its span, though
// nothing comes of it.
func TestTraceTimeout(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
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
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := w.StartRoot(t)
	write := mcptest.Tool(t, openScripted(t, s), "write")
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-asked
		cancel()
	}()
	if _, err := write.Invoke(ctx, mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.Canceled {
		t.Errorf("the call: %v", err)
	}
	root.End()
	mcptest.OneSpan(t, w.Spans(t), "client", "tools/call write").Want(t, map[string]any{"error.type": "CANCELED"})
}

// TestTraceOfLostSession: a session that breaks says so.
func TestTraceOfLostSession(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
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
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := w.StartRoot(t)
	c, err := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25", Server: "lost"}}).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listing.Invokers[0].Invoke(ctx, mcptest.RawCall(`{}`)); err == nil {
		t.Error("the call succeeded")
	}
	mcptest.Await(t, "the loss", c.Lost())
	root.End()
	if got := w.Durations(t, "mcp.client.session.duration"); len(got) != 1 || got[0]["error.type"] != "UNAVAILABLE" || got[0]["server.address"] != "127.0.0.1" {
		t.Errorf("sessions: %v", got)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	mcptest.OneSpan(t, w.Spans(t), "client", "tools/list").Want(t, map[string]any{"mcp.session.id": "the-session"})
	if got := w.Durations(t, "mcp.client.session.duration"); len(got) != 1 {
		t.Errorf("sessions: %v", got)
	}
}

// TestTraceOfHandshakes: an attempt that fails ends its span, and one that is
// refused says how.
func TestTraceOfHandshakes(t *testing.T) {
	s := mcptest.NewScripted(t, nil) // it knows the older protocol alone
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := w.StartRoot(t)
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
	spans := w.Spans(t)
	mcptest.OneSpan(t, spans, "client", "server/discover").Want(t, map[string]any{"error.type": "PROTOCOL"}) // it said 202
	shakes := mcptest.SpansNamed(spans, "client", "initialize")
	if len(shakes) != 2 {
		t.Fatalf("%s", mcptest.SpanNames(spans))
	}
	shakes[0].Want(t, map[string]any{"mcp.protocol.version": "2025-11-25", "error.type": nil})
	shakes[1].Want(t, map[string]any{"error.type": "UNAVAILABLE"})
	if got := w.Durations(t, "mcp.client.session.duration"); len(got) != 1 {
		t.Errorf("sessions: %v", got)
	}
}

// TestTraceOfForeignQuestions: questions of a server without trace context are in the
// trace of the call.
func TestTraceOfForeignQuestions(t *testing.T) {
	w := mcptest.RecordSpans(telemetry.Options{})
	ctx, root := w.StartRoot(t)
	options := &mcpadapter.ClientOptions{Protocol: "2025-11-25", Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, errors.New("the person is asleep")
	}}
	c, err := mcpadapter.InMemory(curious(nil), options).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = mcptest.Tool(t, c, "ask").Invoke(ctx, mcptest.RawCall(`{}`))
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	root.End()
	spans := w.Spans(t)
	call, question := mcptest.OneSpan(t, spans, "client", "tools/call ask"), mcptest.OneSpan(t, spans, "server", "elicitation/create")
	if question.Parent != call.ID || question.Status != "error" {
		t.Errorf("the question %+v, the call %+v", question, call)
	}
	call.Want(t, map[string]any{"network.transport": nil, "network.protocol.name": nil, "server.address": nil})
}
