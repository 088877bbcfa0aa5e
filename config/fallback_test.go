// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// A fallback takes over what the answers of all models have in common. Its address, key
// and name are its own.
func TestFallbackInherits(t *testing.T) {
	keys := func(name string) (string, bool) { return "key-of-" + name, strings.HasSuffix(name, "_KEY") }
	c, err := config.Parse("consort.toml", []byte(`
[[model.fallback]]
name = "claude-x"

[[model.fallback]]
name = "m"
base_url = "http://localhost:1/v1"
max_tokens = 5
stream = true
max_retries = 0
tool_choice = "auto"
response_timeout = "2s"
idle_timeout = "3s"
response_format = {name = "mine"}

[model]
name = "gpt-x"
base_url = "https://api.openai.com/v1"
organization = "o"
headers = {A = "b"}
temperature = 0.5
max_tokens = 7
stream = false
max_retries = 4
tool_choice = "required"
response_timeout = "20s"
idle_timeout = "30s"
response_format = {name = "answer"}
extra_body = {x = 1}
`), &config.Options{Lookup: keys})
	if err != nil {
		t.Fatal(err)
	}
	first, second := c.Model.Fallbacks[0], c.Model.Fallbacks[1]
	shown := func(m config.Model) string {
		return fmt.Sprintln(m.Name.Reveal(), m.BaseURL.Reveal(), m.APIKey.Reveal(), m.Organization.Reveal(), len(m.Headers),
			m.Temperature, len(m.ExtraBody.Reveal()),
			m.MaxTokens, m.NoStream, m.MaxRetries, m.ToolChoice, m.ResponseTimeout, m.IdleTimeout, m.ResponseFormat.Name)
	}
	if got, want := shown(first), fmt.Sprintln("claude-x", "", "key-of-ANTHROPIC_API_KEY", "", 0, first.Temperature, 0, 7, true,
		4, "required", 20*time.Second, 30*time.Second, "answer"); got != want || first.Temperature != nil {
		t.Errorf("the first is\n%s, want\n%s", got, want)
	}
	if got, want := shown(second), fmt.Sprintln("m", "http://localhost:1/v1", "", "", 0, second.Temperature, 0, 5, false, -1,
		"auto", 2*time.Second, 3*time.Second, "mine"); got != want || second.Temperature != nil {
		t.Errorf("the second is\n%s, want\n%s", got, want)
	}
}

// What is wrong with a fallback is said with its place.
func TestFallbackProblems(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "")
	const head = "[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\n"
	for text, says := range map[string]string{
		"[[model.fallback]]\nname = \"claude-x\"\n" +
			"seed = 7\n": "consort.toml:6:8: model.fallback[0].seed: Anthropic's Messages API does not have it",
		"[[model.fallback]]\nname = \"claude-x\"\n" +
			"api_keys = \"x\"\n": `consort.toml:6:1: model.fallback[0].api_keys: unknown key; did you mean "api_key"?`,
		"[[model.fallback]]\nbase_url = \"http://localhost:1/v1\"\n": "model.fallback[0].name: missing",
		"[[model.fallback]]\nname = \"x\"\nfallback = []\n":          "consort.toml:6:1: model.fallback[0].fallback: unknown key",
		"[model.fallback]\nname = \"x\"\n":                           "consort.toml:4:8: model.fallback: expected a list of tables, found a table",
		"[[model.fallback]]\nname = \"x\"\n[[model.fallback]]\n" +
			"name=\"m\"\n": "consort.toml:4:9: model.fallback[0].api_key: OpenAI requires a key; set OPENAI_API_KEY",
		"[[model.fallback]]\nname = \"claude-x\"\n":                              "model.fallback[0].api_key: Anthropic requires a key; set ANTHROPIC_API_KEY",
		"[[model.fallback]]\nname = \"claude-x\"\napi_key = \"a\\nb\"\n":         "consort.toml:6:11: model.fallback[0].api_key: ",
		"[[model.fallback]]\nname = \"claude-x\"\napi_key=\"k\"\nthinking=\"x\"": "consort.toml:7:1: model.fallback[0].thinking: ",
		"[[model.fallback]]\nname = \"claude-x\"\napi_key = \"k\"\n[budgets]\ncurrency = \"EUR\"\ncaps = [{scope = \"conversation\", money = \"1\"}]\n" +
			"prices = {m = {input = \"1\", output = \"1\"}}\n": "budgets.prices: missing: expected the price of the model of [[model.fallback]]",
	} {
		c, err := config.Parse("consort.toml", []byte(head+text), &config.Options{Lookup: func(string) (string, bool) { return "", false }})
		if err == nil {
			var assembly *config.Assembly
			if assembly, err = config.Assemble(c, nil); err == nil {
				err = assembly.Close(context.Background())
			}
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\n%v, want %q", text, err, says)
		}
	}
}

// The advice to remove a key that a fallback has inherited leads to the line that sets it;
// the advice to set it leads to the fallback.
func TestAdviceAboutWhatAFallbackInherits(t *testing.T) {
	for body, says := range map[string]string{
		`{"error":{"message":"Unsupported parameter: 'tool_choice'","code":"unsupported_parameter",` +
			`"param":"tool_choice"}}`: "consort.toml:6: remove tool_choice below [model]",
		`{"error":{"message":"Unsupported parameter: 'seed'","code":"unsupported_parameter",` +
			`"param":"seed"}}`: "consort.toml:12: remove seed",
		`{"error":{"message":"max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens","code":"invalid_value",` +
			`"param":"max_tokens"}}`: "consort.toml:8: set max_tokens = 4096 below [[model.fallback]]",
	} {
		refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, body)
		}))
		defer refuses.Close()
		down := httptest.NewServer(http.NotFoundHandler())
		down.Close()
		c, err := config.Parse("consort.toml", fmt.Appendf(nil, `[model]
name = "first"
base_url = "%s"
max_retries = 0
max_tokens = 9000
tool_choice = "required"

[[model.fallback]]
name = "second"
base_url = "%s"
max_retries = 0
seed = 7
`, down.URL, refuses.URL), nil)
		if err != nil {
			t.Fatal(err)
		}
		assembly, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = converse.New(assembly.Model, nil, nil).Ask(t.Context(), canister.Text("Hi"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
		if err := assembly.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A model that a program sets itself, without a file or a table [model], has no line for the advice.
func TestAdviceAboutAModelOfAProgram(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'tool_choice'","code":"unsupported_parameter","param":"tool_choice"}}`)
	}))
	defer refuses.Close()
	parsed, err := config.Parse("consort.toml", []byte("[conversation]\ninstructions = \"x\"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*config.Config{"without a file": {}, "without the table": parsed} {
		c.Model = &config.Model{Name: values.Plain("m"), BaseURL: values.Plain(refuses.URL)}
		c.Model.ToolChoice = "required"
		assembly, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = converse.New(assembly.Model, nil, nil).Ask(t.Context(), canister.Text("Hi"))
		if err == nil || !strings.Contains(err.Error(), "remove tool_choice below [model]") {
			t.Errorf("%s: %v", name, err)
		}
		if err := assembly.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The fallbacks of a file answer when its model is down, also summaries, each with the key
// of its own server.
func TestFallbackAnswers(t *testing.T) {
	start := func(reply openaiserver.Reply) *openaiserver.Server {
		server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: reply}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return server
	}
	down, up := start(openaiserver.ServerError()), start(openaiserver.Message{Text: "Hello."})
	c, err := config.Parse("consort.toml", fmt.Appendf(nil, `
[model]
name = "gpt-x"
base_url = "%s"
api_key = "key-of-first"
max_retries = 0

[[model.fallback]]
name = "claude-x"
base_url = "%s"
api_key = "key-of-second"
provider = "anthropic"

[compaction]
window = 100000
model = "gpt-mini"
`, down.URL(), up.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	assembly, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []converse.Model{assembly.Model, assembly.Options.Compaction.Model} {
		turn, err := converse.New(model, nil, nil).Ask(t.Context(), canister.Text("Hi"))
		if err != nil || turn.Text() != "Hello." || turn.Answer.Model != "claude-x" {
			t.Errorf("%q by %q, %v", turn.Text(), turn.Answer.Model, err)
		}
	}
	if err := assembly.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for server, key := range map[*openaiserver.Server]string{down: "key-of-first", up: "key-of-second"} {
		requests := server.Requests()
		if len(requests) != 2 {
			t.Errorf("%d requests have %s", len(requests), key)
		}
		for _, request := range requests {
			if text := fmt.Sprint(request.Header); !strings.Contains(text, key) || strings.Count(text, "key-of-") != 1 {
				t.Errorf("the header is %s, want %s", text, key)
			}
		}
	}
}

// A conversation changes to another model by name, with the key of its own table.
func TestOpenModel(t *testing.T) {
	reply := openaiserver.Message{Text: "Hello."}
	steps := []openaiserver.Step{{Reply: reply}, {Reply: reply}, {Reply: reply}}
	server, err := openaiserver.Start(openaiserver.Script{Steps: steps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	c, err := config.Parse("consort.toml", fmt.Appendf(nil, `
[model]
name = "gpt-x"
base_url = "%[1]s"
api_key = "key-of-first"

[[model.fallback]]
name = "claude-x"
base_url = "%[1]s"
api_key = "key-of-second"
provider = "anthropic"
`, server.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	assembly, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer assembly.Close(context.Background())
	for name, key := range map[string]string{"gpt-x": "key-of-first", "claude-x": "key-of-second", "gpt-y": "key-of-first"} {
		model, err := assembly.OpenModel(c, name)
		if err != nil {
			t.Fatal(err)
		}
		turn, err := converse.New(model, nil, nil).Ask(t.Context(), canister.Text("Hi"))
		requests := server.Requests()
		if err != nil || turn.Answer.Model != name || !strings.Contains(fmt.Sprint(requests[len(requests)-1].Header), key) {
			t.Errorf("%s: %q by %q, %v", name, turn.Text(), turn.Answer.Model, err)
		}
	}
	direct, err := config.Parse("consort.toml", []byte("[model]\nname = \"gpt-x\"\napi_key = \"k\"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := assembly.OpenModel(direct, "claude-y"); err == nil || !strings.Contains(err.Error(), "[[model.fallback]]") {
		t.Errorf("a model of another provider: %v", err)
	}
}
