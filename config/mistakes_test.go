// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
)

// mistake is something that people write, and the message that leads them out: where it is,
// which key it is, and a fix.
type mistake struct {
	text     string   // the file
	settings []string // --set
	at       string   // LINE:COLUMN in the file, or a flag
	key      string
	fix      string // in the message
}

// mistakes are mistakes that reading the file finds.
var mistakes = []mistake{
	// Names of tables and keys.
	{"[modle]\nname = 'm'\n", nil, "1:2", "modle", `did you mean "model"?`},
	{"[model]\nnmae = 'm'\nname = 'm'\n", nil, "2:1", "model.nmae", `did you mean "name"?`},
	{"[model]\nname = 'm'\nbaseUrl = 'http://x'\n", nil, "3:1", "model.baseUrl", `did you mean "base_url"?`},
	{"[model]\nname = 'm'\napikey = 'x'\n", nil, "3:1", "model.apikey", `did you mean "api_key"?`},
	{"[mcp.a]\ncomand = ['x']\n", nil, "2:1", "mcp.a.comand", `did you mean "command"?`},
	{"[mcp.a]\nurl = 'http://x'\ncall-timeout = '3s'\n", nil, "3:1", "mcp.a.call-timeout", `did you mean "call_timeout"?`},
	{"[conversation]\ninstruction = 'x'\n", nil, "2:1", "conversation.instruction", `did you mean "instructions"?`},
	{"[log]\nlvl = 'info'\n", nil, "2:1", "log.lvl", `did you mean "level"?`},
	{"[histroy]\npath = 'x'\n", nil, "1:2", "histroy", `did you mean "history"?`},
	{"[serve]\nhttp = '127.0.0.1:0'\ntokens = 'x'\n", nil, "3:1", "serve.tokens", `did you mean "token"?`},
	{"[serve]\nhttp = '127.0.0.1:0'\ntrace_url = 'https://x/trace'\n", nil, "3:13", "serve.trace_url", "expected {trace_id}"},
	// Habits from other hosts.
	{"[mcpServers.a]\ncommand = 'npx'\n", nil, "1:2", "mcpServers", "[mcp.NAME]"},
	{"[mcp_servers.a]\ncommand = 'npx'\n", nil, "1:2", "mcp_servers", "[mcp.NAME]"},
	{"[servers.a]\ncommand = 'npx'\n", nil, "1:2", "servers", `import = ["FILE"]`},
	{"[mcp.a]\ncommand = ['npx']\nargs = ['-y']\n", nil, "3:1", "mcp.a.args", `command = ["npx", "-y", "PACKAGE"]`},
	{"[mcp.a]\ncommand = ['npx']\nenv = {K = 'v'}\n", nil, "3:1", "mcp.a.env", `environment = {KEY = "env:KEY"}`},
	{"[mcp.a]\ncommand = ['npx']\ncwd = '.'\n", nil, "3:1", "mcp.a.cwd", `did you mean "directory"?`},
	{"[mcp.a]\ncommand = ['npx']\ntype = 'stdio'\n", nil, "3:1", "mcp.a.type", `did you mean "transport"?`},
	{"[mcp.a]\ncommand = ['npx']\ntimeout = 60\n", nil, "3:1", "mcp.a.timeout", `call_timeout = "60s"`},
	{"[mcp.a]\ncommand = ['npx']\ndisabled = true\n", nil, "3:1", "mcp.a.disabled", "enabled = false"},
	{"[mcp.a]\ncommand = ['npx']\nalwaysAllow = ['x']\n", nil, "3:1", "mcp.a.alwaysAllow", "[approval]"},
	{"[mcp.a]\ncommand = 'python3 server.py'\n", nil, "2:11", "mcp.a.command", `command = ["python3", "server.py"]`},
	// Values of the wrong kind.
	{"[model]\nname = 5\n", nil, "2:8", "model.name", "expected a string"},
	{"[model]\nname = 'm'\nmax_tokens = '100'\n", nil, "3:14", "model.max_tokens", "expected an integer"},
	{"[model]\nname = 'm'\nstream = 'no'\n", nil, "3:10", "model.stream", "expected true or false"},
	{"[model]\nname = 'm'\nstop = 'x'\n", nil, "3:8", "model.stop", "expected a list of strings"},
	{"[mcp.a]\nurl = 'http://x'\nallow = 'read_*'\n", nil, "3:9", "mcp.a.allow", "expected a list of strings"},
	{"[mcp.a]\nurl = 'http://x'\nheaders = ['A: b']\n", nil, "3:11", "mcp.a.headers", "expected a table"},
	{"model = 'gpt-5-mini'\n", nil, "1:9", "model", "expected a table"},
	{"mcp = ['npx']\n", nil, "1:7", "mcp", "expected a table of"},
	// Values out of range.
	{"[model]\nname = 'm'\ntop_p = 2\n", nil, "3:9", "model.top_p", "from 0 to 1"},
	{"[conversation]\nexchanges = 0\n", nil, "2:13", "conversation.exchanges", "at least 1"},
	{"[mcp.a]\nurl = 'http://x'\nmax_tools = -1\n", nil, "3:13", "mcp.a.max_tools", "at least 1"},
	{"[compaction]\nat = 80\nwindow = 1000\n", nil, "2:6", "compaction.at", "from 0.01 to 1"},
	// Words, durations, sizes, dates.
	{"[mcp.a]\nurl = 'http://x'\ntransport = 'htpp'\n", nil, "3:13", "mcp.a.transport", `did you mean "http"?`},
	{"[mcp.a]\nurl = 'http://x'\nrestart = 'allways'\n", nil, "3:11", "mcp.a.restart", `did you mean "always"?`},
	{"[approval]\ndefault = 'alow'\n", nil, "2:11", "approval.default", `did you mean "allow"?`},
	{"[log]\nlevel = 'warning'\n", nil, "2:9", "log.level", `expected "debug", "info", "warn" or "error"`},
	{"[mcp.a]\nurl = 'http://x'\ncall_timeout = 30\n", nil, "3:16", "mcp.a.call_timeout", `such as "30s"`},
	{"[conversation]\ntime = '5 minutes'\n", nil, "2:8", "conversation.time", `such as "30s"`},
	{"[mcp.a]\ncommand = ['x']\nlimits = {memory = '2gb'}\n", nil, "3:20", "mcp.a.limits.memory", `such as "512MiB"`},
	{"[mcp.a]\nurl = 'http://x'\nprotocol = 2025-11-25\n", nil, "3:12", "mcp.a.protocol", "in quotes"},
	// Names of trusted values that identify nobody.
	{"[conversation]\nidentity = []\n", nil, "2:12", "conversation.identity", "at least one name"},
	{"[conversation]\nidentity = ['user', 'mail']\n[serve]\nhttp = '127.0.0.1:0'\nclients = [{token = '0123456789abcdef', trusted = {user = 'ada'}}]\n",
		nil, "2:21", "conversation.identity[1]", "there are user"},
	{"[conversation]\nidentity = ['user']\n[serve]\nhttp = '127.0.0.1:0'\nclients = [{name = 'ada', token = '0123456789abcdef'}]\n",
		nil, "2:13", "conversation.identity[0]", "give each client its own"},
	{"[conversation]\nidentity = ['sub', 'mail']\n[trusted]\nuser = 'ada'\n[serve]\nhttp = '127.0.0.1:0'\n[serve.oidc]\nissuer = 'https://x'\naudience = 'x'\ntrusted = {email = 'email'}\n",
		nil, "2:20", "conversation.identity[1]", "there are email, iss, sub, user"},
	// Limits that would not apply.
	{"[serve]\nhttp = '127.0.0.1:0'\nclients = [{name = 'ada', token = '0123456789abcdef'}]\nbudgets = [{clients = ['bob'], window = 'day', calls = 1}]\n",
		nil, "4:24", "serve.budgets[0].clients[0]", "there are ada"},
	{"[budgets]\ncurrency = 'EUR'\ncaps = [{scope = 'roster', tokens = 9, money = '0.00'}]\n", nil, "3:48", "budgets.caps[0].money", "above 0"},
	{"[model]\nname = 'm'\nmax_tools = 0\n", nil, "3:13", "model.max_tools", "-1 for no limit"},
	{"[model]\nname = 'm'\nmax_description = 0\n", nil, "3:19", "model.max_description", "-1 for no limit"},
	// Lists that could mean everything or nothing.
	{"[mcp.a]\nurl = 'http://x'\nallow = []\n", nil, "3:9", "mcp.a.allow", `"*" matches everything`},
	{"[grpc.a]\naddress = '127.0.0.1:1'\nallow = []\n", nil, "3:9", "grpc.a.allow", `"*" matches everything`},
	{"[[approval.rules]]\naction = 'allow'\ntools = []\n", nil, "3:9", "approval.rules[0].tools", `"*" matches everything`},
	{"[[approval.rules]]\naction = 'allow'\nensembles = []\n", nil, "3:13", "approval.rules[0].ensembles", `"*" matches everything`},
	{"[serve]\nhttp = '127.0.0.1:0'\nhosts = []\n", nil, "3:9", "serve.hosts", "expected the names that clients use"},
	// Addresses.
	{"[model]\nname = 'm'\nbase_url = 'localhost:11434'\n", nil, "3:12", "model.base_url", "begins with http:// or https://"},
	{"[model]\nname = 'm'\nbase_url = 'https://user:pw@x/v1'\n", nil, "3:12", "model.base_url", "set credentials in api_key or headers"},
	{"[mcp.a]\nurl = 'x/mcp'\n", nil, "2:7", "mcp.a.url", "begins with http:// or https://"},
	{"[serve]\nhttp = '8080'\n", nil, "2:8", "serve.http", `such as "127.0.0.1:8080"`},
	{"[serve]\nhttp = '0.0.0.0:8080'\n", nil, "2:8", "serve.http", "set token, clients or oidc"},
	// Variables.
	{"[model]\nname = 'm'\napi_key = 'env:ABSENT'\n", nil, "3:11", "model.api_key", "${ABSENT:-default}"},
	{"[model]\nname = 'm'\napi_key = '${ABSENT'\n", nil, "3:11", "model.api_key", "$${"},
	{"[model]\nname = 'm'\napi_key = 'env:my-key'\n", nil, "3:11", "model.api_key", "letters, digits and _"},
	{"[model]\nname = 'm'\napi_key = 'env:EMPTY'\n", nil, "3:11", "model.api_key", "but the variable is: set it"},
	// Keys that are missing, or contradict others.
	{"[model]\nbase_url = 'http://x'\n", nil, "1:2", "model.name", `name = "gpt-5-mini"`},
	{"[mcp.a]\n", nil, "1:6", "mcp.a.command", "expected command for a server that is started"},
	{"[mcp.a]\ntransport = 'http'\n", nil, "1:6", "mcp.a.url", `url = "http://localhost:8080/mcp"`},
	{"[mcp.a]\ncommand = ['x']\nurl = 'http://x'\n", nil, "3:1", "mcp.a.url", "remove one"},
	{"[mcp.a]\ncommand = ['x']\nheaders = {A = 'b'}\n", nil, "3:1", "mcp.a.headers", `not for a server with transport = "stdio": remove it`},
	{"[mcp.a]\ncommand = []\n", nil, "2:11", "mcp.a.command", `write it, such as command = ["npx"`},
	{"[mcp.a]\nurl = 'http://x'\npin_policy = 'warn'\n", nil, "3:1", "mcp.a.pin_policy", `pin = "tools.pins.json"`},
	{"[model]\nname = 'gpt-5-mini'\nprovider = 'anthropic'\n", nil, "3:12", "model.provider", `set provider = "openai"`},
	{"[model]\nname = 'claude-sonnet-5'\nbase_url = 'https://api.openai.com/v1'\n", nil, "3:12", "model.base_url", "remove base_url"},
	{"[model]\nname = 'claude-sonnet-5'\nseed = 1\n", nil, "3:8", "model.seed", "remove seed"},
	{"[serve]\nconverse = true\n", nil, "2:1", "serve.converse", "add a [model] table"},
	{"[serve]\nhttp = '127.0.0.1:0'\ntoken = 'short'\n", nil, "3:9", "serve.token", "openssl rand -hex 32"},
	{"[[approval.rules]]\ntools = ['x']\n", nil, "1:12", "approval.rules[0].action", `expected "allow"`},
	{"[history]\nstore = 'postgres'\n", nil, "1:2", "history.dsn", `dsn = "env:DATABASE_URL"`},
	{"[history]\nstore = 'sqlite'\n", nil, "1:2", "history.path", `path = "history.db"`},
	{"[audit]\n", nil, "1:2", "audit.file", `file = "audit.jsonl"`},
	{"[budgets]\n", nil, "1:2", "budgets.caps", `caps = [{`},
	{"[grpc.a]\nadress = 'x:1'\n", nil, "2:1", "grpc.a.adress", `did you mean "address"?`},
	// The form of the file.
	{"[model]\nname = 'm\n", nil, "2:10", "model.name", "close it with the quote with which it begins"},
	{"[model]\nname = gpt-5-mini\n", nil, "2:8", "model.name", `write text in quotes, such as name = "TEXT"`},
	{"[model]\nname: 'm'\n", nil, "2:5", "model.name", "write a key and its value as KEY = VALUE"},
	{"[model]\nname = 'm'\n[model]\n", nil, "3:2", "model", "remove one of the two"},
	{"[mcp.a]\nurl = 'http://x'\nurl = 'http://y'\n", nil, "3:1", "mcp.a.url", "on line 2; remove one of the two"},
	// JSON files.
	{`{"theme": "dark"}`, nil, "1:1", "mcpServers", `as in {"mcpServers": {"NAME": {"command": "npx"}}}`},
	{"{\n  \"mcpServers\": {\"a\": {\"comand\": \"npx\"}}\n}", nil, "2:18", "mcpServers.a.command", "expected command"},
	{"{\n  \"mcpServers\": {\"a\": {\"command\": [\"npx\"]}}\n}", nil, "2:35", "mcpServers.a.command", "expected a string"},
	{"{\n  \"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": \"-y\"}}\n}", nil, "2:50", "mcpServers.a.args", "expected a list of strings"},
	{"{\n  \"mcpServers\": {\"a\": {\"url\": \"x\"}}\n}", nil, "2:31", "mcpServers.a.url", "begins with http:// or https://"},
	{"{\n  \"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"K\": \"${ABSENT}\"}}}\n}", nil, "2:53", "mcpServers.a.env.K", "${ABSENT:-default}"},
	{"{\n  \"mcpServers\": {\"a\" {}}\n}", nil, "2:22", "mcpServers.a", `write ":" between a key and its value`},
	// The command line.
	{"", []string{"model.nmae=m"}, "--set model.nmae", "model.nmae", `did you mean "name"?`},
	{"", []string{"model.name=m", "model.temperature=hot"}, "--set model.temperature", "model.temperature", "expected a number"},
	{"", []string{"mcp.a.command=npx -y x"}, "--set mcp.a.command", "mcp.a.command", `command = ["python3", "server.py"]`},
	{"", []string{"mcp.a.call_timeout=30", "mcp.a.url=http://x"}, "--set mcp.a.call_timeout", "mcp.a.call_timeout", `such as "30s"`},
	{"", []string{"log.level=verbose"}, "--set log.level", "log.level", `expected "debug"`},
	{"", []string{"model.name=m", "model.stop=[a"}, "--set model.stop", "model.stop", "write text in quotes"},
	{"", []string{"model"}, "--set", "", "such as --set model.temperature=0.2"},
	{
		"[[approval.rules]]\naction = 'ask'\n", []string{"approval.rules.action=deny"}, "--set approval.rules.action",
		"approval.rules.action", "--set 'approval.rules=[…]'",
	},
}

// TestMistakes: each mistake is reported with its place, its key and a fix.
func TestMistakes(t *testing.T) {
	if len(mistakes) < 60 {
		t.Errorf("only %d mistakes", len(mistakes))
	}
	for _, m := range mistakes {
		if m.at == "" || m.fix == "" || m.key == "" && m.at != "--set" {
			t.Errorf("%q %q lacks a place, a key or a fix", m.text, m.settings)
		}
		_, err := config.Parse("consort.toml", []byte(m.text), &config.Options{Lookup: lookup, Set: m.settings})
		m.found(t, err, "consort.toml")
	}
}

// TestMistakesOutsideTheFile: the place of a mistake is also named if only assembling the
// parts finds it.
func TestMistakesOutsideTheFile(t *testing.T) {
	folder := t.TempDir()
	for _, m := range []mistake{
		{fmt.Sprintf("[audit]\nfile = %q\n", filepath.Join(folder, "none", "audit.jsonl")), nil, "2:1", "audit.file", "create the folder first"},
		{"[model]\nname = 'gpt-5-mini'\n", nil, "1:2", "model.api_key", "set OPENAI_API_KEY"},
		{"[model]\nname = 'm'\nbase_url = 'http://x/v1/chat/completions'\n", nil, "3:1", "model.base_url", "/chat/completions"},
		{"[model]\nname = 'gpt-5-mini'\napi_key = 'sk-ant-1'\n", nil, "3:1", "model.api_key", "key of Anthropic"},
		{
			"[model]\nname = 'm'\nbase_url = 'http://x'\n", []string{"model.base_url=http://x/v1/responses"},
			"--set model.base_url", "model.base_url", "/responses",
		},
		{"", []string{"audit.file=" + filepath.Join(folder, "none", "a.jsonl")}, "--set audit.file", "audit.file", "create the folder first"},
	} {
		t.Setenv("OPENAI_API_KEY", "")
		settings, err := config.Parse(
			"consort.toml", []byte(m.text),
			&config.Options{Lookup: func(string) (string, bool) { return "", false }, Set: m.settings},
		)
		if err == nil {
			var parts *config.Assembly
			if parts, err = config.Assemble(settings, nil); err == nil {
				err = parts.Close(t.Context())
			}
		}
		m.found(t, err, "consort.toml")
	}
}

// found checks that an error reports the mistake.
func (m *mistake) found(t *testing.T, err error, file string) {
	t.Helper()
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		t.Errorf("%q %q: %v", m.text, m.settings, err)
		return
	}
	for _, p := range wrong.Problems {
		at := p.File
		if p.File == file {
			at = fmt.Sprintf("%d:%d", p.Line, p.Column)
		}
		if at == m.at && p.Key == m.key && strings.Contains(p.Error(), m.fix) {
			return
		}
	}
	t.Errorf("%q %q: %v\nlacks %s, %s, %s", m.text, m.settings, err, m.at, m.key, m.fix)
}
