// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/tomltext"
)

func TestExitStatusAndWhatIsSaid(t *testing.T) {
	t.Parallel()
	good := file(t, model(t, says("Hello.")), atlas(0))
	unreachable := "[model]\nname = \"gone\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmax_retries = 0\n"
	for name, test := range map[string]struct {
		args   []string
		stdin  string
		want   exit.Status
		stderr []string
	}{
		"no arguments":          {nil, "", exit.Done, nil},
		"unknown command":       {[]string{"tolls"}, "", exit.Usage, []string{"tolls", "tools"}},
		"unknown flag":          {[]string{"tools", "--jsn"}, "", exit.Usage, []string{"--jsn"}},
		"argument too many":     {[]string{"check", "x"}, "", exit.Usage, []string{`"x"`}},
		"bad log level":         {[]string{"check", "--config", good, "--log-level", "loud"}, "", exit.Usage, []string{"loud", "debug"}},
		"no configuration":      {[]string{"run", "hi"}, "", exit.Usage, []string{"consort.toml", "--config", "consort init", "consort demo"}},
		"wrong configuration":   {[]string{"run", "hi", "--config", file(t, "[modle]\n")}, "", exit.Usage, []string{"consort.toml:1", "modle", `"model"`}},
		"no model":              {[]string{"run", "hi", "--config", file(t, atlas(0))}, "", exit.Usage, []string{"[model]"}},
		"no model to chat with": {[]string{"chat", "--config", file(t, atlas(0))}, "", exit.Usage, []string{"[model]"}},
		"no key":                {[]string{"run", "hi", "--config", file(t, "[model]\nname = \"gpt-5-mini\"\n")}, "", exit.Usage, []string{"OPENAI_API_KEY"}},
		"no prompt":             {[]string{"run", "--config", good}, " \n", exit.Usage, []string{"standard input is empty"}},
		"model away":            {[]string{"run", "hi", "--config", file(t, unreachable)}, "", exit.Failed, []string{"127.0.0.1:1"}},
		"required server away":  {[]string{"tools", "--config", file(t, broken+"required = true\n")}, "", exit.Failed, []string{"broken", "no licence"}},
		"limit": {[]string{
			"run", "hi", "--config", file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`))), atlas(0), "[conversation]\nexchanges = 1\n"),
		},
			"", exit.Limit, []string{"limit of exchanges with the model, which is 1 (conversation.exchanges)\n"}},
		"limit with a final answer": {[]string{
			"run", "hi", "--config", file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("Snow.")),
				atlas(0), "[conversation]\nexchanges = 1\nfinal_answer = true\n"),
		},
			"", exit.Limit, []string{"limit of exchanges with the model, which is 1 (conversation.exchanges); the answer is the final one"}},
		"length": {[]string{"run", "hi", "--config", file(t, model(t, openaiserver.Step{Reply: openaiserver.Message{Text: "cut", Finish: "length"}}))},
			"", exit.Limit, []string{"max_tokens"}},
		"call":            {[]string{"call", "atlas", "weather", `{"city":"Oslo"}`, "--config", good}, "", exit.Done, nil},
		"call from stdin": {[]string{"call", "atlas", "weather", "-", "--config", good}, `{"city":"Oslo"}`, exit.Done, nil},
		"call fails": {
			[]string{"call", "atlas", "weather", `{"city":"Olso"}`, "--config", good}, "", exit.Tool, []string{"EXECUTION_FAILED", "did you mean Oslo?"},
		},
		"call breaks schema": {
			[]string{"call", "atlas", "weather", `{"town":"Oslo"}`, "--config", good}, "", exit.Tool, []string{"INVALID_ARGUMENTS", "/city", "/town"},
		},
		"call unreachable": {[]string{"call", "broken", "x", "--config", file(t, broken)}, "", exit.Tool, []string{"UNAVAILABLE", "no licence"}},
		"call bad JSON":    {[]string{"call", "atlas", "weather", `{"city"`, "--config", good}, "", exit.Usage, []string{"JSON", "byte 7"}},
		"call no object":   {[]string{"call", "atlas", "weather", `"Oslo"`, "--config", good}, "", exit.Usage, []string{"JSON object"}},
		"call no ensemble": {[]string{"call", "atals", "weather", "--config", good}, "", exit.Usage, []string{`"atals"`, "atlas"}},
		"one dash":         {[]string{"tools", "-config", good}, "", exit.Usage, []string{"unknown flag -config; did you mean --config?"}},
		"misspelled flag":  {[]string{"tools", "--confg", good}, "", exit.Usage, []string{"unknown flag --confg; did you mean --config?"}},
		"no such flag":     {[]string{"tools", "--gizmo"}, "", exit.Usage, []string{"unknown flag: --gizmo"}},
		"call no tool":     {[]string{"call", "atlas", "wether", "--config", good}, "", exit.Usage, []string{"did you mean weather?"}},
		"call set aside": {
			[]string{"call", "atlas", "weather", "--config", file(t, atlas(0)+"deny = [\"w*\"]\n")}, "", exit.Usage, []string{"set aside", `"w*"`},
		},
		"call too little": {[]string{"call", "atlas", "--config", good}, "", exit.Usage, []string{"ENSEMBLE TOOL"}},
		"check":           {[]string{"check", "--offline", "--config", good}, "", exit.Done, nil},
		"check server":    {[]string{"check", "--offline", "--config", file(t, atlas(0), broken)}, "", exit.Tool, nil},
		"check file":      {[]string{"check", "--offline", "--config", file(t, "[modle]\n")}, "", exit.Usage, nil},
		"check key":       {[]string{"check", "--offline", "--config", file(t, "[model]\nname = \"gpt-5-mini\"\n")}, "", exit.Usage, nil},
		"version":         {[]string{"version"}, "", exit.Done, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := run{stdin: test.stdin}.consort(t, test.args...).expect(t, test.want)
			contains(t, "standard error", o.stderr, test.stderr...)
			if test.want == exit.Usage && test.args[0] != "check" && o.stdout != "" {
				t.Errorf("standard output: %s", o.stdout)
			}
		})
	}
}

func TestRunKeepsTheAnswerApart(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		says("", calls("atlas__weather", `{"city":"Oslo"}`), calls("satchel__pack", `{"items":["hat"]}`)),
		says("It snows; take the hat."),
	), atlas(0), satchel(0), allows)
	o := consort(t, "run", "What now?", "--config", path).expect(t, exit.Done)
	if o.stdout != "It snows; take the hat.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	contains(t, "standard error", o.stderr, "✓ atlas__weather", "Oslo: -3 °C, snow", "✓ satchel__pack")
	lacks(t, "standard error", o.stderr, "\x1b", "take the hat")
}

func TestRunReadsItsPromptFromStandardInput(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, openaiserver.Step{
		Expect: openaiserver.Expect{Contains: []string{"from the pipe"}}, Reply: openaiserver.Message{Text: "Read."},
	}))
	o := run{stdin: "this came from the pipe\n"}.consort(t, "run", "--config", path).expect(t, exit.Done)
	if o.stdout != "Read.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
}

func TestRunAsksNobody(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		says("", calls("satchel__pack", `{"items":["hat"]}`)),
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"approval"}}, Reply: openaiserver.Message{Text: "Not allowed."}},
	), satchel(0), "[approval]\ndefault = \"ask\"\n")
	o := consort(t, "run", "Pack.", "--config", path, "--json").expect(t, exit.Done)
	contains(t, "the events", o.stdout, `"code":"DENIED"`)
	lacks(t, "the events", o.stdout, "invocation_started")
}

func TestCallPrintsWhatTheToolSaid(t *testing.T) {
	t.Parallel()
	path := file(t, atlas(0))
	o := consort(t, "call", "atlas", "weather", `{"city":"Quito"}`, "--config", path).expect(t, exit.Done)
	if o.stdout != "Quito: 14 °C, showers\n" || o.stderr != "" {
		t.Errorf("standard output: %q, standard error: %q", o.stdout, o.stderr)
	}
	for city, code := range map[string]string{"Quito": "", "Qito": "EXECUTION_FAILED"} {
		o := consort(t, "call", "atlas", "weather", `{"city":"`+city+`"}`, "--config", path, "--json")
		c, err := canister.Unmarshal([]byte(strings.TrimSuffix(o.stdout, "\n")))
		if err != nil {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		if result := c.(canister.Result); result.Code != code || result.ID == "" || result.Invocation == "" {
			t.Errorf("%s: %s", city, o.stdout)
		}
	}
}

// The record of a call has the size of the printed text, also for a failure.
func TestCallIsAudited(t *testing.T) {
	t.Parallel()
	trail := filepath.Join(t.TempDir(), "audit.jsonl")
	path := file(t, atlas(0), "[audit]\nfile = "+tomltext.Quote(trail)+"\n")
	for _, arguments := range []string{`{"city":"Quito"}`, `{"city":"Qito"}`, `{"town":"Quito"}`} {
		o := consort(t, "call", "atlas", "weather", arguments, "--config", path, "--json")
		c, err := canister.Unmarshal([]byte(strings.TrimSuffix(o.stdout, "\n")))
		if err != nil {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		result := c.(canister.Result)
		lines, err := os.ReadFile(trail)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Code  string `json:"code"`
			Bytes int    `json:"bytes"`
		}
		all := strings.Split(strings.TrimSpace(string(lines)), "\n")
		if err := json.Unmarshal([]byte(all[len(all)-1]), &record); err != nil {
			t.Fatal(err)
		}
		want := len(canister.TextOf(result.Content)) // and structured content, of a result
		if record.Code != cmp.Or(result.Code, "OK") || record.Bytes < want || result.Failed() && record.Bytes != want || want == 0 {
			t.Errorf("%s: %+v, want %d bytes and the code %q", arguments, record, want, result.Code)
		}
	}
}

func TestCheckTellsOfEachServer(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), atlas(0)+"deny = [\"local_*\"]\n", broken, satchel(0))
	o := consort(t, "check", "--offline", "--config", path).expect(t, exit.Tool)
	contains(t, "the report", o.stdout, "atlas    ready   MCP 20", "satchel 1.0.0", "broken   failed", "no licence",
		"local_time is set aside", "model scripted at")
	o = consort(t, "check", "--offline", "--config", path, "--json").expect(t, exit.Tool)
	var r reports.Check
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.OK || len(r.Servers) != 3 {
		t.Fatalf("%s", o.stdout)
	}
	a, b := r.Servers[0], r.Servers[1]
	if a.State != "ready" || a.Tools != 1 || a.Server != "atlas" || a.ConnectMS <= 0 || !strings.HasPrefix(a.Protocol, "MCP 20") ||
		len(a.Aside) != 1 || a.Aside[0].Tool != "local_time" || a.Error != "" {
		t.Errorf("atlas: %+v", a)
	}
	if b.State != "lost" || !strings.Contains(b.Error, "no licence") {
		t.Errorf("broken: %+v", b)
	}
}

// Whether the audit trail can be kept shows only when it is opened.
func TestCheckOpensTheAuditFile(t *testing.T) {
	t.Parallel()
	table := "[audit]\nfile = %q\n[model]\nname = 'm'\nbase_url = 'http://127.0.0.1:1'\n"
	folder := t.TempDir()
	path := file(t, fmt.Sprintf(table, filepath.Join(folder, "none", "audit.jsonl")))
	o := consort(t, "check", "--offline", "--config", path).expect(t, exit.Usage)
	contains(t, "check", o.stdout, path+":2:1: audit.file: ", "no such file or directory")
	path = file(t, fmt.Sprintf(table, filepath.Join(folder, "audit.jsonl")))
	consort(t, "check", "--offline", "--config", path).expect(t, exit.Done)
}

func TestCheckListsAllProblems(t *testing.T) {
	t.Parallel()
	path := file(t, "[modle]\n[mcp.x]\ntransport = \"stdoi\"\n")
	o := consort(t, "check", "--offline", "--config", path, "--json").expect(t, exit.Usage)
	var r reports.Check
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.OK || len(r.Problems) < 2 || r.Problems[0].Nearest != "model" || r.Problems[0].Line != 1 {
		t.Errorf("%s", o.stdout)
	}
}

func TestToolsListsWhatIsOffered(t *testing.T) {
	t.Parallel()
	path := file(t, atlas(0), broken, satchel(0)+"allow = [\"*pack\"]\n")
	o := consort(t, "tools", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "atlas__weather", "satchel__unpack", "weigh set aside")
	contains(t, "standard error", o.stderr, "broken")
	o = consort(t, "tools", "--config", path, "--json").expect(t, exit.Done)
	var list reports.ToolList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 4 || list.Tools[1].Name != "atlas__weather" || !list.Tools[1].Hints.ReadOnly ||
		!strings.Contains(string(list.Tools[1].InputSchema), `"city"`) || len(list.Aside) != 1 || len(list.Away) != 1 {
		t.Errorf("%s", o.stdout)
	}
}

// A tool that the model cannot take is set aside by check and tools too.
func TestTheModelHasASay(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), "[mcp.odd]\ntransport = \"stdio\"\ncommand = [\"sh\", \"-c\", "+tomltext.Quote(oddServer)+"]\nprotocol = \"2025-11-25\"\n")
	o := consort(t, "check", "--offline", "--config", path).expect(t, exit.Done)
	contains(t, "the report", o.stdout, "list is set aside", "servers of models do not support")
}

// oddServer offers a tool whose schema Go can check, but no model can be given.
const oddServer = `
read -r initialize
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}'
read -r initialized
read -r list
echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"list","inputSchema":{"type":"object","$dynamicAnchor":"n","properties":{"of":{"$dynamicRef":"#n"}}}}]}}'
cat >/dev/null
`

func TestLogsGoToStandardError(t *testing.T) {
	t.Parallel()
	o := consort(t, "tools", "--config", file(t, atlas(0)), "--log-level", "debug").expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "DEBUG", `"ensemble": "atlas"`)
	lacks(t, "standard output", o.stdout, "DEBUG")
}

// What a server says of the secrets that it was given is not shown.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	path := file(t, "[mcp.leaky]\ntransport = \"stdio\"\ncommand = [\"sh\", \"-c\", \"echo $PASSWORD >&2; exit 3\"]\n"+
		"environment = {PASSWORD = \"env:CONSORT_TEST_PASSWORD\"}\n")
	for _, args := range [][]string{{"call", "leaky", "x"}, {"check"}, {"check", "--json"}, {"tools"}} {
		o := consort(t, append(args, "--config", path, "--log-level", "debug")...)
		contains(t, args[0], o.stdout+o.stderr, "exit status 3", "[secret]")
		lacks(t, args[0], o.stdout+o.stderr, password)
	}
}
