// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// conventions is what testdata has of the published files: names, levels, kinds.
type conventions struct {
	Spans map[string]struct {
		Kind       string
		Attributes map[string]string
	}
	Metrics map[string]struct {
		Instrument, Unit string
		Buckets          []float64
		Attributes       map[string]string
	}
}

func published(t *testing.T) (c conventions) {
	t.Helper()
	text, err := os.ReadFile("testdata/conventions.json")
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || len(c.Spans) != 5 || len(c.Metrics) != 9 {
		t.Fatalf("testdata: %d spans, %d metrics, %v", len(c.Spans), len(c.Metrics), err)
	}
	return c
}

// conventionOf names the convention that a span is by.
func conventionOf(span tracetest.SpanStub) string {
	if valueOf(span, "mcp.method.name").AsString() != "" {
		return "mcp " + span.SpanKind.String()
	}
	name, _, _ := strings.Cut(span.Name, " ")
	return name
}

// beyond are the attributes that are in the registry of the conventions, but not
// on these spans: the conversation belongs to all (the conventions let
// applications add it), a provider was required of invoke_agent by versions
// before, and the rest are of the conventions of RPC and of requirements/4.
var beyond = map[string][]string{
	"invoke_agent": {"gen_ai.provider.name"},
	"execute_tool": {"gen_ai.conversation.id"},
	"mcp client":   {"gen_ai.conversation.id", "rpc.system.name", "rpc.method", "mcp.app_id", "mcp.tool_name"},
	"mcp server":   {"gen_ai.conversation.id", "rpc.system.name", "rpc.method"},
}

// never are the attributes whose condition is never met here: requests ask for one
// choice, top_k is not a parameter of the model's servers, and agents have neither data
// sources nor descriptions.
var never = []string{"gen_ai.request.choice.count", "gen_ai.request.top_k", "gen_ai.data_source.id", "gen_ai.agent.description"}

func TestSpansHaveWhatTheConventionsRequire(t *testing.T) {
	c := published(t)
	failed := &telemetry.Fault{Type: "TIMEOUT", Message: "It took too long."}
	for name, test := range map[string]struct {
		fault   *telemetry.Fault
		content bool
		bare    bool
	}{"done": {}, "failed": {fault: failed}, "content": {content: true}, "bare": {bare: true, content: true}} {
		t.Run(name, func(t *testing.T) {
			s := see(t, telemetry.Options{Content: test.content})
			if test.bare {
				bare(s)
			} else {
				work(s, test.fault)
			}
			found := map[string]map[string]bool{}
			for _, span := range s.spans.GetSpans() {
				if strings.HasPrefix(span.Name, "connect") {
					continue // ours
				}
				by := conventionOf(span)
				convention, ok := c.Spans[by]
				if !ok || span.SpanKind.String() != convention.Kind {
					t.Fatalf("%s (%v) is by no convention, or of another kind", span.Name, span.SpanKind)
				}
				if found[by] == nil {
					found[by] = map[string]bool{}
				}
				for _, a := range span.Attributes {
					key := string(a.Key)
					found[by][key] = true
					level := convention.Attributes[key]
					if level == "" && !strings.HasPrefix(key, "consort.") && !slices.Contains(beyond[by], key) {
						t.Errorf("%s has %s, which its convention does not know", span.Name, key)
					}
					if level == "opt_in" && !test.content {
						t.Errorf("%s has %s, for which nobody asked", span.Name, key)
					}
				}
				for key, level := range convention.Attributes {
					if level == "required" && valueOf(span, key).Type() == attribute.EMPTY {
						t.Errorf("%s lacks %s, which is required", span.Name, key)
					}
				}
			}
			for by, convention := range c.Spans {
				for key, level := range convention.Attributes {
					want := found[by][key]
					switch level {
					case "conditionally_required":
						want = !test.bare && !slices.Contains(never, key)
						if key == "error.type" || key == "rpc.response.status_code" {
							want = test.fault != nil
						}
					case "opt_in":
						want = test.content && !test.bare && key != "gen_ai.prompt.variable" && by != "invoke_agent"
					}
					if found[by][key] != want {
						t.Errorf("%s: %s (%s) is there: %t", by, key, level, found[by][key])
					}
				}
			}
		})
	}
}

func TestMetricsAreThoseOfTheConventions(t *testing.T) {
	c := published(t)
	s := see(t, telemetry.Options{})
	bare(s)
	work(s, &telemetry.Fault{Type: "TIMEOUT"})
	made := s.metrics()
	for name, convention := range c.Metrics {
		m, ok := made[name]
		if !ok {
			t.Errorf("%s was not measured", name)
			continue
		}
		bounds, sets := histogram(m)
		if bounds == nil || convention.Instrument != "histogram" || m.Unit != convention.Unit || !slices.Equal(bounds, convention.Buckets) {
			t.Errorf("%s: %T in %s with buckets %v", name, m.Data, m.Unit, bounds)
		}
		all := map[string]bool{}
		for _, set := range sets {
			for _, a := range set.ToSlice() {
				key := string(a.Key)
				all[key] = true
				if convention.Attributes[key] == "" && !strings.HasPrefix(key, "consort.") && key != "rpc.system.name" {
					t.Errorf("%s has %s, which its convention does not know", name, key)
				}
			}
			for key, level := range convention.Attributes {
				if level == "required" && !set.HasValue(attribute.Key(key)) {
					t.Errorf("%s lacks %s, which is required, in %v", name, key, set.Encoded(attribute.DefaultEncoder()))
				}
			}
		}
		for key, level := range convention.Attributes {
			if level == "conditionally_required" && !all[key] || level == "opt_in" && all[key] {
				t.Errorf("%s: %s (%s) is there: %t", name, key, level, all[key])
			}
		}
	}
	for name := range made {
		if _, ok := c.Metrics[name]; !ok && !strings.HasPrefix(name, "consort.") {
			t.Errorf("%s is by no convention", name)
		}
	}
}

// histogram returns the bounds of the buckets and the attributes of all points.
func histogram(m metricdata.Metrics) (bounds []float64, sets []attribute.Set) {
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			bounds, sets = p.Bounds, append(sets, p.Attributes)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			bounds, sets = p.Bounds, append(sets, p.Attributes)
		}
	}
	return bounds, sets
}

// The general attributes are from the version named by the scope.
func TestGeneralAttributesAreOfTheSchema(t *testing.T) {
	if telemetry.SchemaURL != semconv.SchemaURL {
		t.Errorf("the schema is %s, and the module's is %s", telemetry.SchemaURL, semconv.SchemaURL)
	}
	general := []attribute.Key{semconv.ErrorTypeKey, semconv.ServerAddressKey, semconv.ServerPortKey, semconv.ClientAddressKey,
		semconv.ClientPortKey, semconv.NetworkTransportKey, semconv.NetworkProtocolNameKey, semconv.NetworkProtocolVersionKey,
		semconv.RPCResponseStatusCodeKey, semconv.RPCSystemNameKey, semconv.RPCMethodKey, semconv.JSONRPCRequestIDKey}
	s := see(t, telemetry.Options{})
	work(s, &telemetry.Fault{Type: "TIMEOUT"})
	_, request := telemetry.StartRequest(s.context(), telemetry.Call{Method: "tools/list", RPC: "p.S/M"}, telemetry.Peer{Network: "grpc", System: "grpc"})
	request.End(nil, nil)
	for _, span := range s.spans.GetSpans() {
		if span.InstrumentationScope.Name != telemetry.Scope || span.InstrumentationScope.SchemaURL != telemetry.SchemaURL {
			t.Fatalf("the scope is %v", span.InstrumentationScope)
		}
		for _, a := range span.Attributes {
			switch key := string(a.Key); key[:strings.IndexByte(key, '.')] {
			case "gen_ai", "mcp", "consort":
			default:
				if !slices.Contains(general, a.Key) {
					t.Errorf("%s has %s, which the schema does not know", span.Name, key)
				}
			}
		}
	}
}

// The tables of docs/observability have all names that are recorded.
func TestTheTablesHaveAllNames(t *testing.T) {
	page, err := os.ReadFile("../../docs/observability/README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := see(t, telemetry.Options{Content: true})
	stop, err := s.Observe(func() telemetry.EnsembleState {
		return telemetry.EnsembleState{Name: "a", State: "b", States: []string{"b"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	work(s, nil)
	work(s, &telemetry.Fault{Type: "x", Cause: os.ErrNotExist})
	ctx, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{})
	chat.Retried(1, 0, telemetry.Fault{})
	chat.End(telemetry.ChatResult{})
	_, request := telemetry.StartRequest(ctx, telemetry.Call{Method: "tools/call", Tool: "t", RPC: "p.S/M"},
		telemetry.Peer{Network: "grpc", System: "grpc", Application: "a"})
	request.End(nil, nil)
	names := map[string]bool{}
	add := func(list []attribute.KeyValue) {
		for _, a := range list {
			names[string(a.Key)] = true
		}
	}
	for _, span := range s.spans.GetSpans() {
		add(span.Attributes)
		for _, event := range span.Events {
			names[event.Name] = true
			add(event.Attributes)
		}
	}
	for name, m := range s.metrics() {
		names[name] = true
		_, sets := histogram(m)
		for _, set := range sets {
			add(set.ToSlice())
		}
	}
	if len(names) < 70 {
		t.Fatalf("only %d names were recorded", len(names))
	}
	for name := range names {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/observability/README.md does not have %s", name)
		}
	}
}

func TestGauges(t *testing.T) {
	s := see(t, telemetry.Options{})
	read := func() telemetry.EnsembleState {
		return telemetry.EnsembleState{Name: "atlas", State: "ready", States: []string{"idle", "ready"}, InFlight: 2, Restarts: 3, Tools: 4, Aside: 5}
	}
	stop, err := s.Observe(read)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"consort.ensemble.calls": 2, "consort.ensemble.restarts": 3, "consort.ensemble.tools": 4, "consort.ensemble.tools.aside": 5}
	made := s.metrics()
	for name, n := range want {
		data, ok := made[name].Data.(metricdata.Sum[int64])
		if !ok || len(data.DataPoints) != 1 || data.DataPoints[0].Value != n {
			t.Errorf("%s is %v", name, made[name].Data)
		}
	}
	states, _ := made["consort.ensemble.states"].Data.(metricdata.Sum[int64])
	for _, p := range states.DataPoints {
		state, _ := p.Attributes.Value("consort.ensemble.state")
		if (p.Value == 1) != (state.AsString() == "ready") {
			t.Errorf("the state %s counts %d", state.AsString(), p.Value)
		}
	}
	if len(states.DataPoints) != 2 || states.IsMonotonic {
		t.Errorf("the states are %v", states)
	}
	stop()
	stop()
	if made := s.metrics(); len(made) != 0 {
		t.Errorf("after stop there is %v", made)
	}
}
