// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAssembledPartsTalk takes a file to an answer: the model's request shows
// what the file says of it, and the tool was reached through HTTP with the
// headers of the file.
func TestAssembledPartsTalk(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	for _, name := range []string{"report", "forbidden"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "rain"}}}, nil, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	tools := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer database-5553" {
			t.Errorf("the server got Authorization: %q", got)
		}
		if got := r.Header.Get("Mcp-Protocol-Version"); got != "" && got != "2025-06-18" {
			t.Errorf("the server was asked for protocol %s", got)
		}
		handler.ServeHTTP(w, r)
	}))
	defer tools.Close()
	requests := make(chan map[string]any, 2)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request map[string]any
		if err := json.Unmarshal(body, &request); err != nil {
			t.Errorf("the model was sent %s", body)
		}
		requests <- request
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Take a coat."}}]}`)
	}))
	defer model.Close()
	c, err := parse(`
[model]
name = "m"
base_url = "`+model.URL+`"
stream = false
temperature = 0.5
extra_body = {key = "env:HOST"}
response_format.schema = {type = "object"}
[conversation]
instructions = "Be brief."
[mcp.weather]
url = "`+tools.URL+`"
headers = {Authorization = "Bearer ${DATABASE_TOKEN}"}
deny = ["forb*"]
protocol = "2025-06-18"
[mcp.off]
command = ["no such program"]
enabled = false
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	talk := converse.New(parts.Model, parts.Roster, parts.Options)
	for _, err := range talk.Send(ctx, canister.Text("What should I wear?")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := talk.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := parts.Close(ctx); err != nil {
		t.Error(err)
	}
	request, err := json.Marshal(<-requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"temperature":0.5`, `"key":"example.host-5554"`, `Be brief.`, `"model":"m"`, `weather__report`, `"schema":{"type":"object"}`,
	} {
		if !strings.Contains(string(request), part) {
			t.Errorf("the request lacks %s: %s", part, request)
		}
	}
	for _, part := range []string{"forbidden", `"stream":true`} {
		if strings.Contains(string(request), part) {
			t.Errorf("the request has %s: %s", part, request)
		}
	}
}

func TestAssembleOrderAndOptions(t *testing.T) {
	c, err := parse("[mcp.b]\ncommand=['x']\n[mcp.a]\nurl='http://x'\n[mcp.c]\ntransport='sse'\nurl='http://x'\n[conversation]\nexchanges=2\n"+
		"time='3s'\ntokens=4\nparallel=5\nfinal_answer=true\nresult_bytes=6\ntools=7\nspill='kept'\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, &config.AssembleOptions{Ensembles: []*ensemble.Ensemble{ensemble.Local("own")}})
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	var names []string
	for _, e := range parts.Roster.Ensembles() {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "own a b c" {
		t.Errorf("the roster is %s", got)
	}
	want := converse.Limits{Exchanges: 2, Time: 3 * time.Second, Tokens: 4, Parallel: 5, FinalAnswer: true, ResultBytes: 6, Tools: 7}
	if parts.Options.Limits != want || parts.Options.Spill == nil || c.Conversation.Spill.Reveal() != "kept" ||
		parts.Options.Approve != nil || parts.Model != nil {
		t.Errorf("the options are %+v", parts.Options)
	}
}

func TestAssembleErrors(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	_, err := config.Assemble(&config.Config{
		Model:    &config.Model{Name: values.Plain("x")},
		Approval: config.Approval{Rules: []config.Rule{{Action: "maybe"}}},
		MCP: map[string]*config.Server{
			"own": {Transport: config.HTTP, URL: values.Plain("http://x")},
			"nil": nil, "none": {}, "empty": {Transport: config.Stdio},
			"words":  {Transport: config.HTTP, Supervision: config.Supervision{Options: ensemble.Options{Restart: ensemble.Restart{Policy: "maybe"}}}},
			"trusty": {Transport: config.HTTP, Supervision: config.Supervision{Options: ensemble.Options{Trust: "maybe"}}},
			"policy": {Transport: config.HTTP, Supervision: config.Supervision{PinPolicy: "maybe"}},
			"pinned": {Transport: config.HTTP, Supervision: config.Supervision{Pin: values.Plain(filepath.Join(t.TempDir(), "no", "pins"))}},
		},
	}, &config.AssembleOptions{Ensembles: []*ensemble.Ensemble{ensemble.Local("own")}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"model.api_key: OpenAI requires a key", `unknown action "maybe"`, "mcp.nil: ", `mcp.none: unknown transport ""`,
		"mcp.empty: the server has no command", `mcp.words: unknown restart "maybe"`, `mcp.trusty: unknown trust "maybe"`,
		`mcp.policy: unknown pin policy "maybe"`, "mcp.pinned: pin: ", `two ensembles named "own"`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	parts, err := config.Assemble(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := parts.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestApproval(t *testing.T) {
	c, err := parse(`
[approval]
default = "ask"
[[approval.rules]]
action = "deny"
ensembles = ["fi?es"]
tools = ["delete_*", "a.b"]
reason = "Not here."
[[approval.rules]]
action = "allow"
read_only = true
[[approval.rules]]
action = "allow"
destructive = false
idempotent = true
open_world = false
[[approval.rules]]
action = "deny"
tools = ["*/wipe"]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := converse.Deny("asked")
	approve, err := c.Approval.Func(func(context.Context, converse.Approval) (converse.Decision, error) { return asked, nil }, false)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := c.Approval.Func(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	no := false
	tests := []struct {
		ensemble, tool string
		hints          invoker.Hints
		want, alone    converse.Decision
	}{
		{"files", "delete_all", invoker.Hints{ReadOnly: true}, converse.Deny("Not here."), converse.Deny("Not here.")},
		{"fi/es", "delete_\nall", invoker.Hints{}, converse.Deny("Not here."), converse.Deny("Not here.")},
		{"files2", "delete_all", invoker.Hints{ReadOnly: true}, converse.Allow(), converse.Allow()},
		{"files", "aXb", invoker.Hints{ReadOnly: true}, converse.Allow(), converse.Allow()},
		{"files", "write", invoker.Hints{Idempotent: true, Destructive: &no, OpenWorld: &no}, converse.Allow(), converse.Allow()},
		{
			"files", "write", invoker.Hints{Idempotent: true, Destructive: &no}, asked,
			converse.Deny("This call needs approval, but no person can be asked here."),
		},
		{
			"files", "disk/wipe", invoker.Hints{}, converse.Deny("The configuration of this program does not allow this call."),
			converse.Deny("The configuration of this program does not allow this call."),
		},
	}
	for _, test := range tests {
		ask := converse.Approval{Ensemble: test.ensemble, Tool: test.tool, Definition: &invoker.Definition{Hints: test.hints}}
		for i, decide := range []converse.ApproveFunc{approve, alone} {
			got, err := decide(t.Context(), ask)
			want := []converse.Decision{test.want, test.alone}[i]
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s %+v: %+v, %v; want %+v", test.ensemble, test.tool, test.hints, got, err, want)
			}
		}
	}
	if approve, err := (&config.Approval{}).Func(nil, false); approve != nil || err != nil {
		t.Errorf("no rules: %v", err)
	}
}

// TestServerIsStartedAsWritten starts a program that only says where it is and
// what it was given.
func TestServerIsStartedAsWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	directory := t.TempDir()
	if err := os.Mkdir(filepath.Join(directory, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(directory, "consort.toml"), []byte(`
public_variables = ["HOST"]
[mcp.teller]
command = ["sh", "-c", "echo $1 $KEY $(basename $PWD) >&2; exit 3", "sh", "${HOST}"]
environment = {KEY = "given"}
directory = "below"
`), &config.Options{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := parts.Roster.Connect(ctx); err == nil || !strings.Contains(err.Error(), "example.host-5554 given below") {
		t.Errorf("the program did not say what was expected: %v", err)
	}
	if err := parts.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestServerIsLimited: the limits of the file are those of the process, from
// the first message to it on.
func TestServerIsLimited(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no resource limits")
	}
	for memory, want := range map[string]string{ // in KiB
		`"512MiB"`: "524288", `"1GB"`: "976562", "1073741824": "1048576", `"1TiB"`: "1073741824", `"536870912B"`: "524288", `"700000KiB"`: "700000",
	} {
		c, err := parse(`mcp.limited = {command = ["sh", "-c", "read line; echo $(ulimit -v) $(ulimit -n) $(ulimit -t) >&2; exit 3"], limits = {memory = `+
			memory+`, open_files = 64, cpu = "1m30s"}}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := parts.Roster.Connect(ctx); err == nil || !strings.Contains(err.Error(), want+" 64 90") {
			t.Errorf("memory = %s: %v; want %s 64 90", memory, err, want)
		}
		if err := parts.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestEnsembleOptions(t *testing.T) {
	c, err := parse("[mcp.a]\ncommand=['x']\nallow=['b']\ndeny=['c']\nrequired=true\ncall_timeout='2s'\nsettings={k='env:HOST'}\n"+
		"call_limit='4s'\nrestart='always'\npark_after=6\npark_window='7s'\nkeepalive='8s'\nidle_disconnect='9s'\nrefresh='11s'\ntrust='all'\n"+
		"max_tools=10\ninstructions=false\n"+
		"[mcp.b]\nurl='http://x'\nconnect_timeout='3s'\nrestart='on_use'\npark_after=0\ntrust='none'\n[mcp.c]\nurl='http://x'\nrestart='never'\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.MCP["a"].EnsembleOptions(), c.MCP["b"].EnsembleOptions()
	a.Logger, b.Logger = nil, nil
	if want := (ensemble.Options{
		ConnectTimeout: 30 * time.Second, CallTimeout: 2 * time.Second, Allow: []string{"b"}, Deny: []string{"c"},
		Required: true, Settings: map[string]any{"k": "example.host-5554"},
		CallLimit: 4 * time.Second, Restart: ensemble.Restart{Policy: ensemble.RestartAlways, Tries: 6, Window: 7 * time.Second},
		KeepAlive: 8 * time.Second, IdleDisconnect: 9 * time.Second, Refresh: 11 * time.Second, Trust: ensemble.TrustAll, MaxTools: 10, OmitInstructions: true,
	}); !reflect.DeepEqual(*a, want) {
		t.Errorf("the options of a are %+v", a)
	}
	if want := (ensemble.Options{
		ConnectTimeout: 3 * time.Second, Trust: ensemble.TrustNone, Restart: ensemble.Restart{Policy: ensemble.RestartOnUse, Tries: -1},
	}); !reflect.DeepEqual(*b, want) {
		t.Errorf("the options of b are %+v", b)
	}
	if redact := c.MCP["c"].Redact(strings.ToUpper); redact == nil || redact("x") != "X" {
		t.Error("the health of c is not redacted")
	}
	if c := c.MCP["c"].EnsembleOptions(); c.Restart != (ensemble.Restart{Policy: ensemble.RestartNever}) {
		t.Errorf("the options of c are %+v", c)
	}
}

// TestSampling: a server asks the conversation's model only with sampling = true, and
// then also with tools of its own.
func TestSampling(t *testing.T) {
	for sampling, want := range map[string]bool{"": false, "sampling = false": false, "sampling = true": true} {
		offered := make(chan bool, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"method":"initialize"`) {
				offered <- strings.Contains(string(body), `"sampling":{"tools":{}}`)
				if !want && strings.Contains(string(body), `"sampling"`) {
					t.Errorf("%q: declared %s", sampling, body)
				}
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		defer server.Close()
		c, err := config.Parse("c.toml", []byte("[model]\nbase_url='http://x'\nname='m'\n[mcp.a]\nurl='"+server.URL+
			"'\nprotocol='2025-11-25'\n"+sampling+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer parts.Close(t.Context())
		_, _ = parts.Roster.Catalog(t.Context())
		if got := <-offered; got != want {
			t.Errorf("%q: a model is offered: %v", sampling, got)
		}
	}
}

// TestPins: servers share a file, whose path begins where the configuration is.
func TestPins(t *testing.T) {
	directory := t.TempDir()
	c, err := config.Parse(filepath.Join(directory, "consort.toml"),
		[]byte("[mcp]\na={url='http://x', pin='${HOST}.json'}\nb={url='http://x', pin='host.json', enabled=false}\n"),
		&config.Options{Lookup: func(string) (string, bool) { return "host", true }})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(directory, "host.json")
	for name, s := range c.MCP {
		if s.Pin.Reveal() != path {
			t.Errorf("the pins of %s are in %q", name, s.Pin.Reveal())
		}
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Assemble(c, nil); err == nil || !strings.Contains(err.Error(), "mcp.a.pin: pins in ") || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the error is %v", err)
	}
}

// TestPinsKeepSecrets: the reason names the file, and its path can hold one.
func TestPinsKeepSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret-777.json")
	s := &config.Supervision{Pin: values.Plain(path)}
	screen, err := s.Screen("a", func(text string) string { return strings.ReplaceAll(text, "secret-777", "[secret]") })
	if err != nil {
		t.Fatal(err)
	}
	definitions := []*invoker.Definition{{Name: "x"}}
	if aside := screen(definitions); len(aside) > 0 {
		t.Errorf("set aside are %v", aside)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	reason := screen(definitions)["x"]
	if reason == nil || strings.Contains(reason.Error(), "secret-777") || !strings.Contains(reason.Error(), "[secret].json") {
		t.Errorf("the reason is %v", reason)
	}
}
