// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// watching are the other observers of a turn besides its spans; each may be nil.
type watching struct {
	meters  metric.MeterProvider // of the client, and of the servers over HTTP and gRPC
	closing func()               // called before the client closes
	log     *zap.Logger          // of the client
}

// turn runs a conversation of one turn, in which the tool of one server, if it is named,
// is asked about a place that it does not know. It returns the spans of all four
// processes, or of their substitutes.
func turn(t *testing.T, unlucky string, w watching) []span {
	t.Helper()
	var calls, told []string
	for _, tool := range []string{"sky__weather", "sea__tides", "land__traffic"} {
		place, word := "Oslo", "of Oslo: fair"
		if tool == unlucky {
			place, word = "Atlantis", "There is no Atlantis."
		}
		calls, told = append(calls, tool, fmt.Sprintf(`{"place":%q}`, place)), append(told, word)
	}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: startModel(t, asks(calls...), says("Fair.", told...)), APIKey: "sk-test"})
	if err != nil {
		t.Fatal(err)
	}
	own := mustRecord(t, "client", telemetry.Options{Meters: w.meters})
	s := startServers(t, own.Telemetry, w)
	talk := converse.New(model, s.roster, &converse.Options{ID: "talk-1", Telemetry: own.Telemetry, Logger: w.log})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for event, err := range talk.Send(ctx, canister.Text("How is it out there?")) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := event.(converse.TurnCompleted); ok && done.Turn.Text() != "Fair." {
			t.Errorf("the answer is %q", done.Turn.Text())
		}
	}
	if w.closing != nil {
		w.closing()
	}
	s.closeRoster() // the child writes its spans when it leaves
	return slices.Concat(own.spans(), s.http.spans(), s.grpc.spans(), read(t, s.file))
}

// A turn is one trace, across two exchanges, three tools, three transports and
// four processes.
func TestSpanTree(t *testing.T) {
	all := turn(t, "", watching{})
	agent := one(t, all, "invoke_agent", "client")
	if got, want := tree(ofTrace(all, agent.Trace)), documentedTree(t); got != want {
		t.Errorf("the trace of the turn is\n%s\nwant\n%s", got, want)
	}
	for _, s := range all {
		conforms(t, s)
	}
	attributes(t, all)
	connects(t, all, agent)
}

// What a tool says that it could not do is an error of its spans on both sides,
// and of no other.
func TestSpanTreeOfAFailure(t *testing.T) {
	for _, tt := range []struct{ ensemble, tool, process string }{
		{"sky", "weather", "stdio"}, {"sea", "tides", "http"}, {"land", "traffic", "grpc"},
	} {
		t.Run(tt.process, func(t *testing.T) {
			all := turn(t, tt.ensemble+"__"+tt.tool, watching{})
			marked := make(map[string]string)
			for _, s := range all {
				if s.Status != "Unset" || s.Attributes["error.type"] != nil {
					marked[s.Name+" "+s.Process] = fmt.Sprintf("%s %v", s.Status, s.Attributes["error.type"])
				}
			}
			want := map[string]string{
				"execute_tool " + tt.ensemble + "__" + tt.tool + " client": "Error NOT_FOUND",
				"tools/call " + tt.tool + " client":                        "Error tool_error",
				"tools/call " + tt.tool + " " + tt.process:                 "Error tool_error",
			}
			if fmt.Sprint(marked) != fmt.Sprint(want) {
				t.Errorf("the errors are\n%q, want\n%q", marked, want)
			}
		})
	}
}

// documentedTree is the one that trace.md has.
func documentedTree(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(traceDocument)
	if err != nil {
		t.Fatal(err)
	}
	from, to := block(string(page), "Across processes")
	if from < 0 {
		t.Fatal("trace.md has no tree across processes")
	}
	return string(page[from:to])
}

// one returns the only span of a name that a process made.
func one(t *testing.T, all []span, name, process string) span {
	t.Helper()
	var found []span
	for _, s := range all {
		if s.Name == name && s.Process == process {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans of %s are called %q:\n%s", len(found), process, name, tree(all))
	}
	return found[0]
}

// conventions are the names of the attributes of each kind of span, and whether
// they are required, as published.
var conventions = func() map[string]map[string]string {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "invoker", "telemetry", "testdata", "conventions.json"))
	if err != nil {
		panic(err)
	}
	var published struct {
		Spans map[string]struct{ Attributes map[string]string }
	}
	if err := json.Unmarshal(data, &published); err != nil {
		panic(err)
	}
	all := make(map[string]map[string]string)
	for name, span := range published.Spans {
		all[name] = span.Attributes
	}
	return all
}()

// conforms fails if a span lacks a required attribute of its kind, or has one that
// neither the conventions nor docs/observability list.
func conforms(t *testing.T, s span) {
	t.Helper()
	kind, _, _ := strings.Cut(s.Name, " ")
	if s.Attributes["mcp.method.name"] != nil {
		kind = "mcp " + s.Kind
	}
	known := conventions[kind]
	if kind == "connect" {
		known = map[string]string{"consort.ensemble": "required"}
	}
	if known == nil {
		t.Errorf("no convention has spans like %q", s.Name)
	}
	for name, level := range known {
		if level == "required" && s.Attributes[name] == nil {
			t.Errorf("%s of %s lacks %s", s.Name, s.Process, name)
		}
	}
	for name := range s.Attributes {
		if known[name] == "" && !strings.HasPrefix(name, "consort.") && !allowed[name] {
			t.Errorf("%s of %s has %s, which its convention does not know", s.Name, s.Process, name)
		}
	}
}

// allowed are attributes of other conventions, such as that of gRPC, and those that
// docs/observability lists beyond the convention of the span.
var allowed = map[string]bool{
	"rpc.system.name": true, "rpc.method": true, "gen_ai.conversation.id": true,
	"gen_ai.provider.name": true, "mcp.app_id": true, "mcp.tool_name": true,
}

// attributes checks what tells a span apart.
func attributes(t *testing.T, all []span) {
	t.Helper()
	call := func(tool string) map[string]any {
		return map[string]any{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "consort.alias": "mcp.call"}
	}
	with := func(base map[string]any, more ...any) map[string]any {
		for pair := range slices.Chunk(more, 2) {
			base[pair[0].(string)] = pair[1]
		}
		return base
	}
	const some = "any value"
	for _, tt := range []struct {
		name, process string
		want          map[string]any
	}{
		{"invoke_agent", "client", map[string]any{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-5-mini", "gen_ai.conversation.id": "talk-1",
			"gen_ai.usage.input_tokens": 320.0, "gen_ai.usage.output_tokens": 40.0, "gen_ai.response.finish_reasons": "stop",
			"consort.turn.reason": "answered", "consort.turn.exchanges": 2.0, "consort.turn.invocations": 3.0,
		}},
		{"execute_tool sky__weather", "client", map[string]any{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sky__weather", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": some,
			"gen_ai.tool.description": "Tells the weather of a place.", "gen_ai.conversation.id": "talk-1", "consort.ensemble": "sky",
		}},
		{
			"tools/call weather", "client", with(call("weather"), "network.transport", "pipe", "jsonrpc.request.id", some,
				"mcp.protocol.version", some, "consort.ensemble", "sky", "gen_ai.conversation.id", "talk-1"),
		},
		{"tools/call weather", "stdio", with(call("weather"), "network.transport", "pipe", "jsonrpc.request.id", some, "mcp.protocol.version", some)},
		{
			"tools/call tides", "client", with(call("tides"), "network.transport", "tcp", "network.protocol.name", "http",
				"jsonrpc.request.id", some, "mcp.protocol.version", some, "server.address", "127.0.0.1", "server.port", some, "consort.ensemble", "sea"),
		},
		{
			"tools/call tides", "http", with(call("tides"), "network.transport", "tcp", "network.protocol.name", "http",
				"jsonrpc.request.id", some, "mcp.protocol.version", some, "client.address", "127.0.0.1", "client.port", some),
		},
		{
			"tools/call traffic", "client", with(call("traffic"), "network.transport", "tcp", "rpc.system.name", "grpc",
				"server.address", "127.0.0.1", "server.port", some, "consort.ensemble", "land"),
		},
		{
			"tools/call traffic", "grpc", with(call("traffic"), "network.transport", "tcp", "rpc.system.name", "grpc",
				"client.address", "127.0.0.1", "client.port", some),
		},
	} {
		s := one(t, all, tt.name, tt.process)
		for name, want := range tt.want {
			if got := s.Attributes[name]; got != want && (want != some || got == nil) {
				t.Errorf("%s of %s has %s %v, want %v", s.Name, s.Process, name, got, want)
			}
		}
	}
	for _, s := range all {
		if s.Name == "chat gpt-5-mini" && (s.Attributes["gen_ai.provider.name"] != "openai_compatible" ||
			s.Attributes["gen_ai.usage.input_tokens"] == nil || s.Attributes["server.address"] != "127.0.0.1") {
			t.Errorf("an exchange has %v", s.Attributes)
		}
	}
}

// connects checks the traces of the connections, which outlast the turn and are
// traces of their own: with a link to it, and the server's side in them.
func connects(t *testing.T, all []span, agent span) {
	t.Helper()
	for ensemble, process := range map[string]string{"sky": "stdio", "sea": "http", "land": "grpc"} {
		connect := one(t, all, "connect "+ensemble, "client")
		if connect.Parent != "" || !slices.Equal(connect.Links, []string{agent.Trace}) {
			t.Errorf("connect %s has the parent %q and the links %q, not that to the turn %s", ensemble, connect.Parent, connect.Links, agent.Trace)
		}
		trace := ofTrace(all, connect.Trace)
		client := one(t, trace, "tools/list", "client")
		server := one(t, trace, "tools/list", process)
		if client.Parent != connect.ID || server.Parent != client.ID || client.Attributes["consort.alias"] != "mcp.tools.list" {
			t.Errorf("the connection to %s is\n%s", ensemble, tree(trace))
		}
	}
}
