// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// The addresses of the providers.
const (
	atOpenAI    = "api.openai.com"
	atAnthropic = "api.anthropic.com"
)

// providers stand in for OpenAI and Anthropic, under their names: a proxy connects the
// command with servers of this process, whose certificate the command trusts. Both are set
// as docs/models.md says.
type providers struct {
	servers map[string]*openaiserver.Server
	env     []string

	mu        sync.Mutex
	strangers []string // other hosts that the command asked for
}

// withProviders starts the servers. Each takes only its own key.
func withProviders(t *testing.T, script openaiserver.Script, keys map[string]string) *providers {
	t.Helper()
	certificate, file := certified(t, atOpenAI, atAnthropic)
	p := &providers{servers: map[string]*openaiserver.Server{}}
	addresses := map[string]string{}
	for _, host := range []string{atOpenAI, atAnthropic} {
		model := openaiserver.New(script, &openaiserver.Options{APIKey: keys[host]})
		server := httptest.NewUnstartedServer(model)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		server.StartTLS()
		t.Cleanup(func() { model.Close(); server.Close() })
		p.servers[host], addresses[host+":443"] = model, server.Listener.Addr().String()
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := addresses[r.Host]
		if r.Method != http.MethodConnect || address == "" {
			p.mu.Lock()
			p.strangers = append(p.strangers, r.Host)
			p.mu.Unlock()
			http.Error(w, "unknown host", http.StatusBadGateway)
			return
		}
		tunnel(t, w, address)
	}))
	t.Cleanup(proxy.Close)
	p.env = []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=127.0.0.1,localhost", "SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + t.TempDir(), "ANTHROPIC_API_KEY="}
	return p
}

// tunnel connects a client of a proxy with an address until one of them closes.
func tunnel(t *testing.T, w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer to.Close()
	w.WriteHeader(http.StatusOK)
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer from.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(from, to) // ends when either side closes
		from.Close()
	}()
	_, _ = io.Copy(to, buffered)
	to.Close()
	<-done
}

// certified returns a certificate for hosts, and a file with it.
func certified(t *testing.T, hosts ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// readmeConfig is the configuration of the README with another table [model]. Its server is
// the command that is tested.
func readmeConfig(t *testing.T, model string) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```toml\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no configuration")
	}
	text := regexp.MustCompile(`(?s)^\[model\].*?\n\n`).ReplaceAllString(string(block[1]), "")
	return file(t, model, strings.Replace(text, `"go", "run", "./cmd/consort"`, `"`+unraced+`"`, 1))
}

// TestNameAndKey: with the name of a model, a key in the environment and nothing else in
// [model], everything in the README works. The servers are strict.
func TestNameAndKey(t *testing.T) {
	t.Parallel()
	weather := openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		says("", calls("atlas__weather", `{"city":"Oslo"}`)),
		{Expect: openaiserver.Expect{Contains: []string{"snow"}}, Reply: openaiserver.Message{Text: "It snows."}},
	}}
	const question = "What is the weather in Oslo?"
	keys := map[string]string{atOpenAI: "sk-proj-4711", atAnthropic: "sk-ant-4712"}
	for _, test := range []struct{ name, host, variable, path string }{
		{"gpt-5.6", atOpenAI, "OPENAI_API_KEY", "/v1/responses"},
		{"claude-sonnet-5", atAnthropic, "ANTHROPIC_API_KEY", "/v1/messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := withProviders(t, weather, keys)
			with := run{env: append(p.env, "OPENAI_API_KEY="+keys[atOpenAI], "ANTHROPIC_API_KEY="+keys[atAnthropic])}
			path := readmeConfig(t, "[model]\nname = \""+test.name+"\"\n")
			on := func(args ...string) []string { return append(args, "--config", path) }
			contains(t, "check", with.consort(t, on("check", "--offline")...).expect(t, exit.Done).stdout, "atlas", "ready")
			contains(t, "tools", with.consort(t, on("tools")...).expect(t, exit.Done).stdout, "weather")
			contains(t, "call", with.consort(t, on("call", "atlas", "weather", `{"city": "Oslo"}`)...).expect(t, exit.Done).stdout, "snow")
			contains(t, "run", with.consort(t, on("run", question)...).expect(t, exit.Done).stdout, "It snows.")
			with.stdin = question + "\n"
			contains(t, "chat", with.consort(t, on("chat")...).expect(t, exit.Done).stdout, "It snows.")
			contains(t, "chat --continue", with.consort(t, on("chat", "--continue")...).expect(t, exit.Done).stdout, "It snows.")
			with.stdin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
				`"clientInfo":{"name":"host","version":"1"}}}` + "\n" +
				`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
			contains(t, "serve", with.consort(t, on("serve")...).expect(t, exit.Done).stdout, `"protocolVersion":"2025-11-25"`)
			p.asked(t, test.host, test.path, 6)
		})
	}
}

// TestDemoWithAName: the README's demonstration with a real model needs its name and a key.
func TestDemoWithAName(t *testing.T) {
	t.Parallel()
	keys := map[string]string{atOpenAI: "sk-proj-4711", atAnthropic: "sk-ant-4712"}
	p := withProviders(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{says("Done.")}}, keys)
	with := run{env: append(p.env, "ANTHROPIC_API_KEY="+keys[atAnthropic])}
	contains(t, "demo", with.consort(t, "demo", "--model", "claude-sonnet-5", "--json").expect(t, exit.Done).stdout, "Done.")
	with = run{env: append(p.env, "OPENAI_API_KEY="+keys[atOpenAI])}
	contains(t, "demo", with.consort(t, "demo", "--model", "gpt-5.6", "--json").expect(t, exit.Done).stdout, "Done.")
}

// asked checks that only one host was asked, at one path, at least so often, and that its
// server found nothing wrong.
func (p *providers) asked(t *testing.T, host, path string, least int) {
	t.Helper()
	for name, server := range p.servers {
		for _, fault := range server.Faults() {
			t.Errorf("%s: %s", name, fault)
		}
		requests := server.Requests()
		if name != host && len(requests) > 0 {
			t.Errorf("%s was asked too", name)
		}
		if name == host && len(requests) < least {
			t.Errorf("%s was asked %d times, want %d", host, len(requests), least)
		}
		for _, r := range requests {
			if r.Path != path {
				t.Errorf("%s was asked at %s, want %s", host, r.Path, path)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.strangers) > 0 {
		t.Errorf("other hosts were asked: %q", p.strangers)
	}
}

// TestWrongCombinations: a configuration that cannot work gets an error with the line to
// change, from the file alone or from the refusal of the server.
func TestWrongCombinations(t *testing.T) {
	t.Parallel()
	refusal := func(status int, message, param, code string) openaiserver.Reply {
		return openaiserver.Failure{Status: status, Message: message, Param: param, Code: code}
	}
	const openAI, claude = "[model]\nname = \"gpt-5.6\"\n", "[model]\nname = \"claude-sonnet-5\"\n"
	for _, test := range []struct {
		name, model string
		env         []string
		reply       openaiserver.Reply // nil: nothing is sent
		line        string
	}{
		{
			"no key", openAI, []string{"OPENAI_API_KEY="}, nil,
			`consort.toml:1:2: model.api_key: OpenAI requires a key; set OPENAI_API_KEY, or api_key = "env:NAME" in this table`,
		},
		{
			"no key, but another one", openAI, []string{"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=sk-ant-1"}, nil,
			`ANTHROPIC_API_KEY is set, which is for name = "claude-…"`,
		},
		{"no key of Anthropic", claude, []string{"OPENAI_API_KEY=sk-proj-1"}, nil, "model.api_key: Anthropic requires a key; set ANTHROPIC_API_KEY"},
		{"key of the other provider", openAI + "api_key = \"sk-ant-4712\"\n", nil, nil, "consort.toml:3:1: model.api_key: APIKey is a key of Anthropic"},
		{"key of the other provider in the environment", claude, []string{"ANTHROPIC_API_KEY=sk-proj-1"}, nil, "or of the variable ANTHROPIC_API_KEY"},
		{
			"provider of another model", openAI + "provider = \"anthropic\"\n", nil, nil,
			`consort.toml:3:12: model.provider: the model is one of OpenAI: set provider = "openai"`,
		},
		{
			"provider of another model, the other way", claude + "provider = \"openai\"\n", nil, nil,
			`consort.toml:3:12: model.provider: the model is one of Anthropic: set provider = "anthropic"`,
		},
		{
			"address of another model", claude + "base_url = \"https://api.openai.com/v1\"\n", nil, nil,
			"consort.toml:3:12: model.base_url: the address is OpenAI's",
		},
		{
			"address of another provider", "[model]\nname = \"m\"\nprovider = \"anthropic\"\nbase_url = \"https://api.openai.com/v1\"\n", nil, nil,
			`consort.toml:3:12: model.provider: the base_url is OpenAI's: set provider = "openai"`,
		},
		{
			"address with the path of a request", "[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1/chat/completions\"\n", nil, nil,
			"consort.toml:3:1: model.base_url: BaseURL ends with /chat/completions",
		},
		{
			"responses with Anthropic", claude + "api = \"responses\"\n", nil, nil,
			"consort.toml:3:7: model.api: Anthropic's Messages API does not have it: remove api",
		},
		{
			"thinking with OpenAI", openAI + "thinking = \"adaptive\"\n", nil, nil,
			`consort.toml:3:12: model.thinking: OpenAI's Responses API does not have it: remove thinking, or set provider = "anthropic"`,
		},
		{"too much thinking", claude + "thinking = \"64000\"\n", []string{"ANTHROPIC_API_KEY=sk-ant-1"}, nil, "consort.toml:3:1: model.thinking: "},
		{
			"hosted tools in Chat Completions", openAI + "api = \"chat\"\nhosted_tools = [{type = \"web_search\"}]\n", nil, nil,
			`consort.toml:4:16: model.hosted_tools: the Chat Completions API does not have it: remove hosted_tools, or set api = "responses"`,
		},
		{
			"summaries in Chat Completions", openAI + "api = \"chat\"\nreasoning_summary = \"auto\"\n", nil, nil,
			`consort.toml:4:21: model.reasoning_summary: the Chat Completions API does not have it: remove reasoning_summary, or set api = "responses"`,
		},
		{
			"a format without a schema with Anthropic", claude + "response_format = {}\n",
			[]string{"ANTHROPIC_API_KEY=sk-ant-1"}, nil, "consort.toml:3:1: model.response_format.schema: missing",
		},
		{
			"reasoning and tools in Chat Completions", openAI + "api = \"chat\"\n", nil,
			refusal(400,
				"Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use "+
					"/v1/responses or set reasoning_effort to 'none'.", "reasoning_effort", ""),
			"consort.toml:3: set api = \"responses\"\n",
		},
		{
			"temperature", openAI + "temperature = 0.2\n", nil,
			refusal(400, "Unsupported parameter: 'temperature' is not supported with this model.", "temperature", "unsupported_parameter"),
			"consort.toml:3: remove temperature\n",
		},
		{
			"a member of extra_body", openAI + "[model.extra_body]\ntop_k = 3\n", nil,
			refusal(400, "Unknown parameter: 'top_k'.", "top_k", "unknown_parameter"), "consort.toml:4: remove extra_body.top_k\n",
		},
		{
			"an organization that is not verified", openAI, nil,
			refusal(400,
				"Your organization must be verified to stream this model. Please go to: "+
					"https://platform.openai.com/settings/organization/general and click on Verify Organization.", "stream", "unsupported_value"),
			"consort.toml:1: set stream = false below [model], or verify the organization\n",
		},
		{
			"no such model", openAI, nil, refusal(404, "The model `gpt-5.6` does not exist or you do not have access to it.", "", "model_not_found"),
			"consort.toml:2: change name, or let the project of the key use this model\n",
		},
		{"wrong key", openAI, []string{"OPENAI_API_KEY=sk-proj-wrong"}, openaiserver.Message{Text: "Hello."}, "change the variable OPENAI_API_KEY\n"},
		{"wrong key in the file", openAI + "api_key = \"sk-proj-wrong\"\n", nil, openaiserver.Message{Text: "Hello."}, "consort.toml:3: change api_key\n"},
		{
			"no credit", claude, []string{"ANTHROPIC_API_KEY=sk-ant-4712"},
			refusal(400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", "", ""),
			"add credit at https://platform.claude.com/settings/billing",
		},
		{
			"effort", claude + "reasoning_effort = \"high\"\n", []string{"ANTHROPIC_API_KEY=sk-ant-4712"},
			refusal(400, "This model does not support the effort parameter.", "", ""), "consort.toml:3: remove reasoning_effort\n",
		},
		{
			"caching", claude, []string{"ANTHROPIC_API_KEY=sk-ant-4712"},
			refusal(400, "cache_control: Extra inputs are not permitted", "", ""), "consort.toml:1: set cache = false below [model]\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply := test.reply
			if reply == nil {
				reply = openaiserver.Message{Text: "Hello."}
			}
			p := withProviders(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: reply}}},
				map[string]string{atOpenAI: "sk-proj-4711", atAnthropic: "sk-ant-4712"})
			with := run{env: append(append(p.env, "OPENAI_API_KEY=sk-proj-4711"), test.env...)}
			got := with.consort(t, "run", "Hello.", "--config", file(t, test.model))
			if got.status == int(exit.Done) {
				t.Errorf("it works: %s", got.stdout)
			}
			contains(t, "the error", got.stderr, test.line)
			for host, server := range p.servers {
				if sent := len(server.Requests()); test.reply == nil && sent > 0 {
					t.Errorf("%s got %d requests", host, sent)
				}
			}
		})
	}
}
