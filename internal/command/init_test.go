// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/tomltext"
)

// newcomer is a user with two servers in Cursor and one in VS Code, and a key.
func newcomer(t *testing.T) run {
	t.Helper()
	home := t.TempDir()
	server := `{"command": ` + tomltext.Quote(testserver) + `, "args": ["atlas"]}`
	writeAt(t, `{"mcpServers": {"atlas": `+server+`, "second": `+server+`}}`, home, ".cursor", "mcp.json")
	writeAt(t, "{\n // a comment\n \"servers\": {\"third\": "+server+",}}", home, ".config", "Code", "User", "mcp.json")
	return run{dir: t.TempDir(), env: []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "OPENAI_API_KEY=sk-proj-4711", "ANTHROPIC_API_KEY=",
	}}
}

// wrote checks the file that init wrote, and returns its text.
func (r run) wrote(t *testing.T, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	r.stdin = ""
	contains(t, "check", r.consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout, "✓ model ")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInitForScripts(t *testing.T) {
	t.Parallel()
	r := newcomer(t)
	o := r.consort(t, "init", "--yes").expect(t, exit.Done)
	contains(
		t, "the report", o.stderr, "Wrote consort.toml, with the model gpt-5-mini and 3 servers:",
		"  atlas of Cursor (~/.cursor/mcp.json)\n", "consort check",
	)
	contains(
		t, "the file", r.wrote(t, "consort.toml"), `name = "gpt-5-mini"`, "[mcp.atlas]", "[mcp.second]", "[mcp.third]",
		"# From Cursor (~/.cursor/mcp.json).",
	)
	contains(t, "again", r.consort(t, "init", "--yes").expect(t, exit.Usage).stderr, "consort.toml exists already", "--force", "--output FILE")
	contains(t, "none", r.consort(t, "init", "--yes", "--force", "--import", "none").expect(t, exit.Done).stderr, "and no servers.")
	lacks(t, "the file", r.wrote(t, "consort.toml"), "[mcp.atlas]")
	r.consort(
		t, "init", "-y", "-o", "new/folder/my.toml", "--import", "third,atlas", "--model", "qwen3", "--base-url",
		"http://localhost:1/v1",
	).expect(t, exit.Done)
	text := r.wrote(t, "new/folder/my.toml")
	contains(t, "the file", text, `name = "qwen3"`, `base_url = "http://localhost:1/v1"`, "[mcp.atlas]", "[mcp.third]")
	lacks(t, "the file", text, "[mcp.second]")

	contains(
		t, "no such server", r.consort(t, "init", "--yes", "-o", "x.toml", "--import", "fourth").expect(t, exit.Usage).stderr,
		"--import fourth", "atlas, second, third",
	)
	contains(t, "no terminal", r.consort(t, "init", "-o", "x.toml").expect(t, exit.Usage).stderr, "needs a terminal", "--yes")
	contains(t, "no model", r.consort(t, "init", "--yes", "--base-url", "http://x").expect(t, exit.Usage).stderr, "--base-url needs --model")
	if _, err := os.Stat(filepath.Join(r.dir, "x.toml")); err == nil {
		t.Error("an error left a file")
	}
	r.env = append(r.env, "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=sk-ant-4712")
	r.consort(t, "init", "--yes", "--force").expect(t, exit.Done)
	contains(t, "with a key of Anthropic", r.wrote(t, "consort.toml"), `name = "claude-sonnet-5"`)
	r.env = append(r.env, "ANTHROPIC_API_KEY=")
	contains(t, "without a key", r.consort(t, "init", "--yes", "--force").expect(t, exit.Done).stderr, "set the variable OPENAI_API_KEY")
}

// TestInitAsks: the forms take defaults, and the file applies in every folder.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	r := newcomer(t)
	x := r.onTerminal(t, "init")
	for _, question := range []string{
		"Where shall", "Who runs the model?", "The name of the model", "The environment variable", "configured in other programs",
	} {
		x.expect(question)
		x.types("\r")
	}
	x.expect("Wrote")
	x.ends(exit.Done)
	home := strings.TrimPrefix(r.env[0], "HOME=")
	contains(t, "the file", r.wrote(t, filepath.Join(home, ".config", "consort", "consort.toml")), `name = "gpt-5-mini"`, "[mcp.atlas]", "[mcp.third]")
	x = r.onTerminal(t, "init")
	x.expect("Where shall")
	x.types("\r")
	x.expect("exists already")
	lacks(t, "with a file", x.ends(exit.Usage), "Who runs the model?")
	contains(t, "in another folder", run{env: r.env}.consort(t, "check", "--offline").expect(t, exit.Done).stdout, "✓ model gpt-5-mini")
}

// TestInitAborts: Ctrl-C writes nothing.
func TestInitAborts(t *testing.T) {
	t.Parallel()
	r := newcomer(t)
	x := r.onTerminal(t, "init", "--output", "consort.toml")
	x.expect("Who runs the model?")
	x.types("\x03")
	x.expect("nothing was written")
	x.ends(exit.Failed)
	if _, err := os.Stat(filepath.Join(r.dir, "consort.toml")); err == nil {
		t.Error("there is a file")
	}
}

// TestInitPlainly: without forms, the questions are lines of text.
func TestInitPlainly(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"--plain": {"init", "--plain"}, "TERM=dumb": {"init"}} {
		r := newcomer(t)
		if name == "TERM=dumb" {
			r.env = append(r.env, "TERM=dumb")
		}
		r.env = append(r.env, "NO_COLOR=1", "WORK_KEY=sk-ant-4712")
		x := r.onTerminal(t, args...)
		for _, step := range [][2]string{
			{"Number [1]: ", "2\n"}, {"Number [1]: ", "2\n"}, {"The name of the model [claude-sonnet-5]: ", "\n"}, {"its key [ANTHROPIC_API_KEY]: ", "WORK_KEY\n"},
			{"or all or none [all]: ", "1,3\n"},
		} {
			x.expect(step[0])
			x.types(step[1])
		}
		x.expect("Wrote")
		lacks(t, name, x.ends(exit.Done), "\x1b")
		text := r.wrote(t, "consort.toml")
		contains(t, name, text, `name = "claude-sonnet-5"`, `api_key = "env:WORK_KEY"`, "[mcp.atlas]", "[mcp.third]")
		lacks(t, name, text, "[mcp.second]")
	}
}
