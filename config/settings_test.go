// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
)

// with parses a file with settings of the command line.
func with(file string, settings ...string) (*config.Config, error) {
	return config.Parse("consort.toml", []byte(file), &config.Options{
		Lookup: lookup, Set: settings, SetBy: map[string]string{"model.name": "--model", "model.base_url": "--base-url"},
	})
}

func TestSettingsOverrideTheFile(t *testing.T) {
	c, err := with("[model]\nname = 'm'\ntemperature = 1\n[mcp.a]\ncommand = ['x', 'y']\ncall_timeout = '9s'\n",
		"model.name=gpt-5-mini", "model.temperature=0.5", `model.stop=["a", 'b']`, "mcp.a.call_timeout=30s", "model.cache_x=1", "mcp.b.url=http://b:1/x?y=z",
		"mcp.b.protocol=2025-11-25", "log.level=info", "log.level=debug", `mcp.a.environment={K = "v=w"}`, "conversation.instructions=Be brief.\nAnd kind.")
	if c != nil || err == nil {
		t.Fatal("the unknown key is not reported")
	}
	c, err = with("[model]\nname = 'm'\ntemperature = 1\n[mcp.a]\ncommand = ['x', 'y']\ncall_timeout = '9s'\n",
		"model.name=gpt-5-mini", "model.temperature=0.5", `model.max_tokens = 64`, "mcp.a.call_timeout=30s", "mcp.b.url=http://b:1/x?y=z",
		"mcp.b.protocol=2025-11-25", "log.level=info", "log.level=debug", `mcp.a.environment={K = "v=w"}`, "conversation.instructions=Be brief.\nAnd kind.")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.MCP["a"], c.MCP["b"]
	got := []any{
		c.Model.Name.Reveal(), *c.Model.Temperature, c.Model.MaxTokens, a.CallTimeout.String(), len(a.Command), a.Environment["K"].Reveal(),
		b.URL.Reveal(), b.Protocol, c.Log.Level, c.Conversation.Instructions, b.Origin, a.Origin,
	}
	want := []any{
		"gpt-5-mini", 0.5, 64, "30s", 2, "v=w", "http://b:1/x?y=z", "2025-11-25", config.LevelDebug, "Be brief.\nAnd kind.",
		"--set mcp.b.url", "consort.toml:4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestSettingsWithoutAFile(t *testing.T) {
	c, err := config.Load("", &config.Options{Lookup: lookup, Set: []string{"model.name=gpt-5-mini"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Model.Name.Reveal() != "gpt-5-mini" || c.Model.APIKey.Reveal() != environment["OPENAI_API_KEY"] {
		t.Errorf("the model is %v", c.Model)
	}
}

// TestSettingProblems: a problem of a setting names the flag where one of the file has its
// position, and never a value.
func TestSettingProblems(t *testing.T) {
	const file = "[model]\nname = 'm'\n[[approval.rules]]\naction = 'allow'\n[mcp.a]\nurl = 'http://x'\n"
	for setting, want := range map[string]string{
		"sk-secret":                       "--set: expected KEY=VALUE with a dotted key of the configuration, such as --set model.temperature=0.2",
		"=sk-secret":                      "--set: expected KEY=VALUE",
		"model..name=sk-secret":           "--set: expected KEY=VALUE",
		"model.temprature=sk-secret":      `--set model.temprature: unknown key; did you mean "temperature"?`,
		"modle.name=sk-secret":            `--set modle.name: modle: unknown key; did you mean "model"?`,
		"model.temperature=sk-secret":     "--set model.temperature: expected a number of at least 0, found a string",
		"model.name=":                     "--model: model.name: expected a string that is not empty",
		"model.base_url=sk-secret":        "--base-url: model.base_url: expected a URL",
		"model.stop=[sk-secret":           "--set model.stop: not valid TOML: ",
		"approval.rules.action=deny":      "--set approval.rules.action: approval.rules is a list, which is set as a whole: --set 'approval.rules=[…]'",
		"mcp.a.command=['x']":             "a server has either command or url, not both: remove one",
		"mcp.b.args=['sk-secret']":        "--set mcp.b.args: mcp.b.command: missing: expected command for a server that is started",
		"log.level=sk-secret":             `--set log.level: expected "debug", "info", "warn" or "error"`,
		"log.level=wran":                  `did you mean "warn"?`,
		`mcp.b={url="http://x", alow=[]}`: `--set mcp.b: mcp.b.alow: unknown key; did you mean "allow"?`,
		"model.api_key=env:ABSENT":        "--set model.api_key: the environment variable is not set: ABSENT",
		"import=['gone.json']":            "--set import: import[0]: cannot read the file",
		"history.path=''":                 "--set history.path: expected a string that is not empty",
		"serve.http=8080":                 "--set serve.http: expected a string",
	} {
		_, err := with(file, setting)
		var wrong *config.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nlacks %s", setting, err, want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the value is shown: %v", setting, err)
		}
	}
}

// TestSettingsOfAModelElsewhere: the credentials of the file are for the server that the
// file names. They do not apply to one that the command line names.
func TestSettingsOfAModelElsewhere(t *testing.T) {
	const ours = "[model]\nname = 'gpt-5-mini'\napi_key = 'file-key'\nheaders = {X = 'file-header'}\norganization = 'file-org'\n" +
		"hosted_tools = [{authorization = 'file-tool'}]\nextra_body = {token = 'file-extra'}\n"
	const theirs = "[model]\nname = 'gpt-5-mini'\nbase_url = 'http://litellm:4000'\napi = 'responses'\napi_key = 'file-key'\n"
	for _, test := range []struct {
		name, file string
		settings   []string
		key        string
		headers    int
		baseURL    string
	}{
		{"nothing moves", ours, []string{"model.temperature=1"}, "file-key", 1, ""},
		{"another model of the same provider", ours, []string{"model.name=gpt-6"}, "file-key", 1, ""},
		{"another address", ours, []string{"model.base_url=http://evil.example/v1"}, "", 0, "http://evil.example/v1"},
		{"another address with its key", ours, []string{"model.base_url=http://x/v1", "model.api_key=own"}, "own", 0, "http://x/v1"},
		{"a model of the other provider", ours, []string{"model.name=claude-sonnet-5"}, "", 0, ""},
		{"a proxy that has all models", theirs, []string{"model.name=claude-sonnet-5"}, "file-key", 0, "http://litellm:4000"},
		{"away from a proxy", theirs, []string{"model.base_url=https://api.openai.com/v1"}, environment["OPENAI_API_KEY"], 0, "https://api.openai.com/v1"},
		{"a name of no known provider", ours, []string{"model.name=llama3.1"}, "file-key", 1, ""},
		{
			"the other provider by the file's address", "[model]\nname = 'gpt-5-mini'\nbase_url = 'https://api.openai.com/v1'\n",
			[]string{"model.name=claude-sonnet-5"}, "", 0, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := with(test.file, test.settings...)
			if err != nil {
				t.Fatal(err)
			}
			m := c.Model
			if m.APIKey.Reveal() != test.key || len(m.Headers) != test.headers || m.BaseURL.Reveal() != test.baseURL {
				t.Errorf("key %q, %d headers, address %q", m.APIKey.Reveal(), len(m.Headers), m.BaseURL.Reveal())
			}
			if test.headers == 0 && (m.Organization.Reveal() != "" || len(m.HostedTools) > 0 || m.ExtraBody.Reveal() != nil) {
				t.Errorf("the rest of the file still applies: %v", m)
			}
		})
	}
}

// TestSettingsNeverSendTheKeyElsewhere: of all combinations of a model in the file and one
// on the command line, the key of the file goes to the host that it was written for, or
// nowhere. Where the model stays, it is used.
func TestSettingsNeverSendTheKeyElsewhere(t *testing.T) {
	const openAI, anthropic, proxy = "api.openai.com", "api.anthropic.com", "proxy.example"
	host := func(c *config.Config) string {
		base := c.Model.BaseURL.Reveal()
		if u, err := url.Parse(base); err == nil && u.Host != "" {
			return u.Host
		}
		if c.Model.Kind == "anthropic" || c.Model.Kind == "" && strings.HasPrefix(c.Model.Name.Reveal(), "claude") {
			return anthropic
		}
		return openAI
	}
	files := map[string]string{
		"": openAI, "name = 'gpt-5-mini'": openAI, "name = 'chatgpt-4o-latest'": openAI, "name = 'llama3.1'": openAI, "name = 'claude-sonnet-5'": anthropic,
		"name = 'opus'\nprovider = 'anthropic'": anthropic, "name = 'gpt-5-mini'\nprovider = 'openai'": openAI,
		"name = 'gpt-5-mini'\nbase_url = 'https://api.openai.com/v1'": openAI, "name = 'claude-sonnet-5'\nbase_url = 'https://api.anthropic.com'": anthropic,
		"name = 'gpt-5-mini'\nbase_url = 'https://proxy.example/v1'":                              proxy,
		"name = 'claude-sonnet-5'\nbase_url = 'https://proxy.example/v1'\nprovider = 'anthropic'": proxy,
		"name = 'gpt-5-mini'\nbase_url = '${PROXY}'":                                              proxy,
	}
	names := []string{"", "gpt-6", "chatgpt-4o-latest", "codex-mini-latest", "ft:gpt-4o", "llama3.1", "claude-opus-5"}
	kinds := []string{"", "openai", "anthropic"}
	bases := []string{"", "https://evil.example/v1", "https://api.openai.com/v1", "https://api.anthropic.com"}
	kept, removed := 0, 0
	for file, home := range files {
		for _, name := range names {
			for _, kind := range kinds {
				for _, base := range bases {
					var settings []string
					for key, text := range map[string]string{"name": name, "provider": kind, "base_url": base} {
						if text != "" {
							settings = append(settings, "model."+key+"="+text)
						}
					}
					c, err := config.Parse("consort.toml", []byte("[model]\n"+file+"\napi_key = 'file-key'\nheaders = {X = 'file-header'}\n"), &config.Options{
						Set:    settings,
						Lookup: func(name string) (string, bool) { return "https://proxy.example/v1", name == "PROXY" },
					})
					if err != nil {
						continue // nothing is sent
					}
					has := c.Model.APIKey.Reveal() != "" || len(c.Model.Headers) > 0
					switch got := host(c); {
					case has && got != home:
						t.Errorf("file %q, settings %q: the key for %s goes to %s", file, settings, home, got)
					case has:
						kept++
					case base == "" && got == home:
						t.Errorf("file %q, settings %q: the key is not used", file, settings)
					default:
						removed++
					}
				}
			}
		}
	}
	if kept < 50 || removed < 50 {
		t.Errorf("the key was kept %d times and removed %d times", kept, removed)
	}
}

// TestSettingsKeepWhatTheyAddThemselves: a flag that moves the model removes the file's part
// of a table, and not the part of another flag.
func TestSettingsKeepWhatTheyAddThemselves(t *testing.T) {
	c, err := with("[model]\nname = 'gpt-5-mini'\nheaders = {X = 'file-header'}\n", "model.headers.Y=own", "model.base_url=http://x/v1")
	if err != nil {
		t.Fatal(err)
	}
	if h := c.Model.Headers; len(h) != 1 || h["Y"].Reveal() != "own" {
		t.Errorf("the headers are %v", h)
	}
}

// TestSettingsOfAServerElsewhere: what the file sends to a server does not go to another
// address.
func TestSettingsOfAServerElsewhere(t *testing.T) {
	const file = "trusted = {user = 'u-4711'}\n[mcp.web]\nurl = 'https://a.example'\nheaders = {Authorization = 'Bearer file'}\ntrusted.headers = {X-User = 'user'}\ncall_timeout = '9s'\n" +
		"[grpc.rpc]\naddress = 'a.example:1'\ntoken = 'file-token'\nmetadata = {k = 'file'}\ntls = {plaintext = true, plaintext_secrets = true}\ntrusted.metadata = {user = 'user'}\n"
	c, err := with(file, "mcp.web.call_timeout=8s", "grpc.rpc.call_timeout=8s")
	if err != nil {
		t.Fatal(err)
	}
	web, rpc := c.MCP["web"], c.GRPC["rpc"]
	if len(web.Headers) != 1 || len(web.TrustedHeaders) != 1 || rpc.Token.Reveal() == "" || !rpc.Plaintext || len(rpc.TrustedMetadata) != 1 {
		t.Errorf("without a move: %+v, %+v", web, rpc)
	}
	for _, place := range []string{"grpc.rpc.address=b.example:1", "grpc.rpc={dapr='b'}"} {
		if c, err = with(file, "mcp.web.url=https://b.example", place); err != nil {
			t.Fatal(err)
		}
		if web := c.MCP["web"]; web.URL.Reveal() != "https://b.example" || len(web.Headers) > 0 || len(web.TrustedHeaders) > 0 ||
			web.CallTimeout != 9*time.Second {
			t.Errorf("%+v", web)
		}
		if rpc := c.GRPC["rpc"]; rpc.Token.Reveal() != "" || len(rpc.Metadata) > 0 || rpc.Plaintext || rpc.PlaintextSecrets || len(rpc.TrustedMetadata) > 0 {
			t.Errorf("%s: %+v", place, rpc)
		}
	}
	c, err = with(
		file, "mcp.web.url=https://b.example", "mcp.web.headers.Authorization=Bearer own", "grpc.rpc.address=b.example:1",
		"grpc.rpc.tls.plaintext=true",
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.MCP["web"].Headers["Authorization"].Reveal(); got != "Bearer own" || !c.GRPC["rpc"].Plaintext || c.GRPC["rpc"].PlaintextSecrets {
		t.Errorf("what the flags repeat: %q, %+v", got, c.GRPC["rpc"])
	}
	arguments := strings.Replace(file, "trusted.headers = {X-User", "trusted.arguments = {user_id", 1)
	if _, err = with(arguments, "mcp.web.url=https://b.example"); err == nil ||
		!strings.Contains(err.Error(), "repeat that with --set mcp.web.trusted.arguments.user_id=NAME") {
		t.Errorf("a trusted argument of a server that moves: %v", err)
	}
	if c, err = with(arguments, "mcp.web.url=https://b.example", "mcp.web.trusted.arguments.user_id=user"); err != nil ||
		c.MCP["web"].Fill["user_id"] != "user" {
		t.Errorf("a trusted argument that is repeated: %v", err)
	}
}

// TestJSONAsConfiguration: the JSON file of another host is a configuration with its
// servers, and the model comes from settings.
func TestJSONAsConfiguration(t *testing.T) {
	for name, text := range map[string]string{
		"mcpServers": `{"mcpServers": {"a": {"command": "npx", "args": ["x"]}}, "theme": "dark"}`,
		"VS Code":    "// servers\n{\n  \"inputs\": [],\n  \"servers\": {\n    \"a\": {\"type\": \"stdio\", \"command\": \"npx\", /* no */ \"args\": [\"x\",],},\n  },\n}\n",
	} {
		c, err := config.Parse("host.json", []byte(text), &config.Options{Lookup: lookup, Set: []string{"model.name=gpt-5-mini", "mcp.b.url=http://b"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.MCP) != 2 || len(c.MCP["a"].Command) != 2 || c.Model.Name.Reveal() != "gpt-5-mini" {
			t.Errorf("%s: %v %v", name, c.MCP, c.Model)
		}
	}
	c, err := config.Parse("h.json", []byte(`{"mcpServers": {"w": {"serverUrl": "http://w/sse"}, "g": {"httpUrl": "http://g", "url": "http://g"}}}`), nil)
	if err != nil || c.MCP["w"].URL.Reveal() != "http://w/sse" || c.MCP["g"].Transport != config.HTTP {
		t.Errorf("%v, %v", c, err)
	}
	for text, want := range map[string]string{
		`{}`:                                    `host.json:1:1: mcpServers: missing: expected an object of servers by name`,
		"{\n  \"mcpServers\": {\"a\": {}}\n}":   `host.json:2:18: mcpServers.a.command: missing`,
		"{\n  \"mcpServers\": {\n":              `host.json:2:18: mcpServers: not valid JSON: unexpected end of JSON input; close each "{" and "["`,
		`{"mcpServers": {"a": {"command": 5}}}`: `host.json:1:34: mcpServers.a.command: expected a string, found an integer`,
		"// x\n{\"mcpServers\": [1]}":           `host.json:2:16: mcpServers: expected a table of`,
		`{"mcpServers": {"a": {"url": "no"}}}`:  `host.json:1:30: mcpServers.a.url: expected a URL`,
		`{"mcpServers": {"a": {"url": "http://a", "httpUrl": "http://b"}}}`: `host.json:1:42: mcpServers.a.httpUrl: it differs from url, which means the same: remove one`,
		`{"mcpServers": {"a": {"url": ["x"], "serverUrl": ["y"]}}}`:         `host.json:1:30: mcpServers.a.url: expected a string`,
		`{"mcpServers": {"a": {"serverUrl": 1}}}`:                           `host.json:1:36: mcpServers.a.serverUrl: expected a string`,
	} {
		_, err := config.Parse("host.json", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nlacks %s", text, err, want)
		}
	}
}
