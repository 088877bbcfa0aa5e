// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/tomltext"
)

// TestWhichFile: --config, the variable, the working directory and the user's own folder, in
// this order, and never two of them.
func TestWhichFile(t *testing.T) {
	t.Parallel()
	own, work := t.TempDir(), t.TempDir()
	named := func(name string) string {
		return "[model]\nname = \"" + name + "\"\nbase_url = \"http://127.0.0.1:1/v1\"\n"
	}
	flag, variable := file(t, named("flagged")), file(t, named("variable"))
	user := writeAt(t, named("users"), own, "consort", "consort.toml")
	with := run{dir: work, env: []string{"XDG_CONFIG_HOME=" + own}}
	reads := func(r run, want, path string, args ...string) {
		t.Helper()
		o := r.consort(t, append([]string{"check", "--offline"}, args...)...).expect(t, exit.Done)
		contains(t, "the report", o.stdout, "✓ "+path+"\n", "✓ model "+want+" ")
	}
	reads(with, "users", user)
	writeAt(t, named("local"), work, "consort.toml")
	reads(with, "local", "consort.toml")
	with.env = append(with.env, "CONSORT_CONFIG="+variable)
	reads(with, "variable", variable)
	reads(with, "flagged", flag, "--config", flag)

	relative := run{dir: t.TempDir(), env: []string{"XDG_CONFIG_HOME=.", "HOME=" + own}} // the specification says to ignore it
	writeAt(t, named("relative"), relative.dir, "consort", "consort.toml")
	contains(t, "the error", relative.consort(t, "check").expect(t, exit.Usage).stderr, filepath.Join(own, ".config", "consort", "consort.toml"))
}

// TestNoConfiguration: the error names all places, and what to do.
func TestNoConfiguration(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	with := run{dir: t.TempDir(), env: []string{"XDG_CONFIG_HOME=" + own}}
	contains(t, "the error", with.consort(t, "chat").expect(t, exit.Usage).stderr,
		"there is no configuration", "CONSORT_CONFIG", filepath.Join(with.dir, "consort.toml")+"\n", filepath.Join(own, "consort", "consort.toml")+"\n",
		"consort init", "--model gpt-5-mini", "consort demo")
	o := with.consort(t, "chat", "--config", "gone.toml").expect(t, exit.Usage)
	contains(t, "the error", o.stderr, "there is no configuration gone.toml, which --config names", "consort init --output gone.toml")
	o = with.consort(t, "chat", "--config", "my gone.toml").expect(t, exit.Usage)
	contains(t, "the error", o.stderr, "consort init --output 'my gone.toml'\n")
	with.env = append(with.env, "CONSORT_CONFIG=away.toml")
	contains(t, "the error", with.consort(t, "chat").expect(t, exit.Usage).stderr, "away.toml, which CONSORT_CONFIG names")
	for _, flag := range []string{"--config", "--model", "--base-url"} {
		contains(t, "the error", with.consort(t, "chat", flag, "").expect(t, exit.Usage).stderr, flag+" is empty")
	}
	for _, args := range [][]string{{"demo", "--set", "a=b"}, {"init", "--yes", "--config", "x"}, {"version", "--model", "m"}} {
		contains(t, "the error", with.consort(t, args...).expect(t, exit.Usage).stderr, "reads no configuration; omit the flag")
	}
}

// TestModelWithoutAFile: a model and a key are enough to talk, to continue and to look at
// what was said.
func TestModelWithoutAFile(t *testing.T) {
	t.Parallel()
	p := withProviders(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{says("Hello.")}},
		map[string]string{atOpenAI: "sk-proj-4711", atAnthropic: "sk-ant-4712"})
	with := run{stdin: "Hi\n", env: append(p.env, "OPENAI_API_KEY=sk-proj-4711", "ANTHROPIC_API_KEY=sk-ant-4712", "XDG_CONFIG_HOME="+t.TempDir())}
	o := with.consort(t, "chat", "--model", "gpt-5-mini").expect(t, exit.Done)
	contains(t, "standard output", o.stdout, "Hello.")
	contains(t, "standard error", o.stderr, "Continue it with: consort chat --conversation ", " --model gpt-5-mini")
	contains(t, "with Claude", with.consort(t, "run", "--set", "model.name=claude-sonnet-5").expect(t, exit.Done).stdout, "Hello.")
	contains(t, "the history", with.consort(t, "history", "list").expect(t, exit.Done).stdout, "Hi")
	contains(
		t, "check", with.consort(t, "check", "--model", "gpt-5-mini").expect(t, exit.Done).stdout, "✓ the command line\n",
		"✓ model gpt-5-mini answered in ",
	)
	contains(t, "no model", with.consort(t, "run", "--set", "log.level=info").expect(t, exit.Usage).stderr, "the command line has no [model] table", "--model")
	with.env = append(with.env, "OPENAI_API_KEY=")
	contains(
		t, "no key", with.consort(t, "chat", "--model", "gpt-5-mini").expect(t, exit.Usage).stderr,
		"--model: model.api_key: OpenAI requires a key; set OPENAI_API_KEY",
	)
}

// TestBaseURLTakesNoKeys: the key of the file and of the environment stay away from a server
// that the command line names.
func TestBaseURLTakesNoKeys(t *testing.T) {
	t.Parallel()
	server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{says("Hello.")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	path := file(t, "[model]\nname = \"gpt-5-mini\"\napi_key = \"sk-file-4713\"\nheaders = {X-Secret = \"header-4714\"}\n")
	with := run{env: []string{"OPENAI_API_KEY=sk-proj-4711"}}
	with.consort(t, "run", "Hi", "--config", path, "--base-url", server.URL()).expect(t, exit.Done)
	with.consort(t, "run", "Hi", "--config", path, "--base-url", server.URL(), "--set", "model.api_key=own-4715").expect(t, exit.Done)
	for i, r := range server.Requests() {
		sent := r.Header.Get("Authorization") + r.Header.Get("X-Secret")
		if want := []string{"", "Bearer own-4715"}[i]; sent != want {
			t.Errorf("request %d has %q, want %q", i, sent, want)
		}
	}
}

// TestSettingsAreNotShown: the value of --set is in no output, and its errors name the flag.
func TestSettingsAreNotShown(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello.")))
	args := []string{"chat", "--config", path, "--set", "model.api_key=own-quokka-secret", "--set", "log.level=debug"}
	o := run{stdin: "Hi\n"}.consort(t, args...).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "consort chat --conversation ", "--config "+path)
	lacks(t, "all output", o.stdout+o.stderr, "quokka", "--set")
	for setting, want := range map[string]string{
		"model.api_kee=own-quokka":       `consort: the configuration is wrong:` + "\n" + `--set model.api_kee: unknown key; did you mean "api_key"?`,
		"conversation.tokens=own-quokka": "--set conversation.tokens: expected an integer, found a string",
		"own-quokka":                     "--set: expected KEY=VALUE",
	} {
		o := consort(t, "run", "Hi", "--config", path, "--set", setting).expect(t, exit.Usage)
		contains(t, "the error", o.stderr, want)
		lacks(t, "the error", o.stderr, "quokka")
	}
}

// TestJSONFileOfAnotherHost: it works as a configuration, with the model of a flag.
func TestJSONFileOfAnotherHost(t *testing.T) {
	t.Parallel()
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("It snows."),
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	path := writeAt(t, `{"mcpServers": {"atlas": {"command": `+tomltext.Quote(testserver)+`, "args": ["atlas"]}}}`,
		t.TempDir(), "claude_desktop_config.json")
	o := consort(t, "run", "Oslo?", "--config", path, "--model", "m", "--base-url", server.URL()).expect(t, exit.Done)
	contains(t, "the answer", o.stdout, "It snows.")
	contains(t, "the tools", consort(t, "tools", "--config", path).expect(t, exit.Done).stdout, "atlas__weather")
	contains(t, "without a model", consort(t, "run", "Oslo?", "--config", path).expect(t, exit.Usage).stderr, path+" has no [model] table", "--model")
	other := writeAt(t, `{"theme": "dark"}`, t.TempDir(), "settings.json")
	contains(t, "another file", consort(t, "tools", "--config", other).expect(t, exit.Usage).stderr, other+":1:1: mcpServers: missing", `{"mcpServers": {`)
}

// TestCheckAsksTheModels: check shows the time of an answer, or why there is none, for each
// model by itself.
func TestCheckAsksTheModels(t *testing.T) {
	t.Parallel()
	up := strings.Replace(model(t, says("OK")), "[model]", "[[model.fallback]]", 1)
	down := "[model]\nname = \"gone\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmax_retries = 0\n"
	path := file(t, down, strings.Replace(up, `"scripted"`, `"second"`, 1))
	o := consort(t, "check", "--config", path).expect(t, exit.Failed)
	contains(t, "the report", o.stdout, "✗ model gone at http://127.0.0.1:1/v1 did not answer: ", "127.0.0.1:1", "✓ fallback second at http", " answered in ")
	contains(t, "as JSON", consort(t, "check", "--json", "--config", path).expect(t, exit.Failed).stdout, `"asked": true`, `"ok": false`)
	o = consort(t, "check", "--offline", "--config", path).expect(t, exit.Done)
	contains(t, "offline", o.stdout, "✓ model gone", "✓ fallback second", "no request was sent")
	contains(t, "offline as JSON", consort(t, "check", "--json", "--offline", "--config", path).expect(t, exit.Done).stdout, `"asked": false`)

	keys := map[string]string{atOpenAI: "sk-proj-4711", atAnthropic: "sk-ant-4712"}
	failing := openaiserver.Failure{Status: 404, Message: "The model `gpt-x` does not exist or you do not have access to it.", Code: "model_not_found"}
	p := withProviders(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: failing}}}, keys)
	path = file(t, "[model]\nname = \"gpt-x\"\n")
	wrong := run{env: append(p.env, "OPENAI_API_KEY=sk-proj-wrong")}.consort(t, "check", "--config", path).expect(t, exit.Failed)
	contains(t, "a wrong key", wrong.stdout, "✗ model gpt-x did not answer: ", "status 401", "change the variable OPENAI_API_KEY")
	unknown := run{env: append(p.env, "OPENAI_API_KEY="+keys[atOpenAI])}.consort(t, "check", "--config", path).expect(t, exit.Failed)
	contains(t, "an unknown model", unknown.stdout, "✗ model gpt-x did not answer: ", path+":2: change name")
}
