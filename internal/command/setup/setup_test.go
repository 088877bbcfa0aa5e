// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/tomltext"
)

// home makes the places of a user with the files given by path: below home/, config/ and
// work/.
func home(t *testing.T, files map[string]string) places {
	t.Helper()
	top := t.TempDir()
	p := places{filepath.Join(top, "home"), filepath.Join(top, "config"), filepath.Join(top, "work")}
	t.Setenv("HOME", p.Home)
	for path, text := range files {
		path = filepath.Join(top, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "WORK", p.Work)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// everyHost has a server in each file of each host.
var everyHost = map[string]string{
	"work/.mcp.json":             `{"mcpServers": {"project": {"command": "npx", "args": ["-y", "p"]}}}`,
	"work/.cursor/mcp.json":      `{"mcpServers": {"cursor-project": {"command": "${workspaceFolder}/run", "cwd": "sub"}}}`,
	"work/.vscode/mcp.json":      "{ // JSON with comments\n  \"servers\": {\"code-project\": {\"type\": \"http\", \"url\": \"http://localhost:1/mcp\",},},\n}",
	"work/.gemini/settings.json": `{"mcpServers": {"gemini-project": {"httpUrl": "http://localhost:2/mcp", "includeTools": ["a"], "excludeTools": ["b"]}}}`,
	"config/Claude/claude_desktop_config.json": `{"mcpServers": {"desktop": {"command": "npx", "args": ["d"]}, "off": {"command": "x", "disabled": true},
		"self": {"command": "/usr/bin/consort", "args": ["serve"]}}}`,
	"home/.claude.json": `{"numStartups": 3, "mcpServers": {"code": {"type": "stdio", "command": "npx", "args": ["c"], "env": {}}},
		"projects": {"WORK": {"mcpServers": {"local": {"type": "sse", "url": "http://localhost:3/sse"}}}, "/elsewhere": {"mcpServers": {"no": {"command": "x"}}}}}`,
	"home/.cursor/mcp.json": `{"mcpServers": {"cursor": {"command": "${userHome}/run"}, "desktop": {"command": "npx", "args": ["d"]}}}`,
	"config/Code/User/mcp.json": `{"inputs": [], "servers": {"vs": {"command": "npx", "args": ["--token=${input:token}"]}, ` +
		`"desktop": {"command": "other"}}}`,
	"home/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"wind": {"serverUrl": "http://localhost:4/mcp", ` +
		`"headers": {"Authorization": "Bearer ${env:TOKEN_SET}"}}}}`,
	"home/.gemini/settings.json": `{"theme": "x", "mcpServers": {"gem": {"url": "http://localhost:5/sse"}, ` +
		`"var": {"command": "x", "env": {"K": "$TOKEN_UNSET"}}}}`,
}

func TestServersOfEveryHost(t *testing.T) {
	t.Setenv("TOKEN_SET", "x")
	p := home(t, everyHost)
	found := findServers(p)
	tables := map[string]string{}
	for _, s := range found.Servers {
		tables[s.Name] = s.table
		if s.Name == "desktop" && len(s.From) != 2 {
			t.Errorf("desktop is from %q", s.From)
		}
	}
	want := map[string]string{
		"project":         "command = [\"npx\", \"-y\", \"p\"]\n",
		"cursor-project":  "command = [" + tomltext.Quote(p.Work+"/run") + "]\ndirectory = " + tomltext.Quote(filepath.Join(p.Work, "sub")) + "\n",
		"code-project":    "url = \"http://localhost:1/mcp\"\n",
		"gemini-project":  "url = \"http://localhost:2/mcp\"\nallow = [\"a\"]\ndeny = [\"b\"]\n",
		"desktop":         "command = [\"npx\", \"d\"]\n",
		"desktop-vs-code": "command = [\"other\"]\n",
		"code":            "command = [\"npx\", \"c\"]\n",
		"local":           "transport = \"sse\"\nurl = \"http://localhost:3/sse\"\n",
		"cursor":          "command = [" + tomltext.Quote(p.Home+"/run") + "]\n",
		"wind":            "url = \"http://localhost:4/mcp\"\nheaders = {Authorization = \"Bearer ${TOKEN_SET}\"}\n",
		"gem":             "transport = \"sse\"\nurl = \"http://localhost:5/sse\"\n",
		"var":             "enabled = false   # set TOKEN_UNSET, then remove this line\ncommand = [\"x\"]\nenvironment = {K = \"${TOKEN_UNSET}\"}\n",
	}
	for name, table := range want {
		if tables[name] != table {
			t.Errorf("%s is %q, want %q", name, tables[name], table)
		}
		delete(tables, name)
	}
	if len(tables) > 0 {
		t.Errorf("also found: %v", tables)
	}
	var skipped []string
	for _, s := range found.skipped {
		skipped = append(skipped, s.Name+": "+s.Reason)
	}
	if want := []string{"self: it is this program", "vs: only VS Code knows the variable ${input:token}"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped: %q", skipped)
	}
	a := defaults("gpt-5-mini", "", found)
	if _, err := config.Parse("consort.toml", []byte(a.Text()), nil); err != nil {
		t.Errorf("%v\n%s", err, a.Text())
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	p := home(t, map[string]string{"work/.mcp.json": `{"mcpServers": [`, "home/.cursor/mcp.json": `{"mcpServers": {"a": {"command": 5}, "b": {}}}`, "home/.gemini/settings.json": `{}`})
	found := findServers(p)
	var got []string
	for _, s := range found.skipped {
		got = append(got, s.Name+" of "+strings.Fields(s.From)[0])
	}
	if !slices.Equal(got, []string{" of Claude", "a of Cursor", "b of Cursor"}) || len(found.Servers) > 0 {
		t.Errorf("skipped %q, found %v", got, found.Servers)
	}
}

// TestSecretsStayWhereTheyAre: a file with a secret is imported by its path if all of it is
// wanted. Otherwise the secret is copied, and that is said.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	p := home(t, map[string]string{
		"home/.cursor/mcp.json": `{"mcpServers": {"git": {"command": "x", "env": {"GITHUB_TOKEN": "ghp-4711"}}, "plain": {"command": "y"}}}`,
		"work/.mcp.json": `{"mcpServers": {"arg": {"command": "x", "args": ["--api-key", "sk-4712"]}, ` +
			`"url": {"url": "http://x/?api_key=4713"}}}`,
		"home/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"head": {"url": "http://x", "headers": {"Authorization": "Bearer 4714"}},` +
			` "off": {"command": "x", "disabled": true}}}`,
	})
	found := findServers(p)
	all := defaults("m", "http://localhost:1/v1", found)
	text := all.Text()
	global, project := filepath.Join(p.Home, ".cursor", "mcp.json"), filepath.Join(p.Work, ".mcp.json")
	for _, want := range []string{tomltext.Quote(global), tomltext.Quote(project), "[mcp.head]", "4714"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
	for _, secret := range []string{"4711", "4712", "4713", "[mcp.plain]"} {
		if strings.Contains(text, secret) {
			t.Errorf("it has %s:\n%s", secret, text)
		}
	}
	c, err := config.Parse(filepath.Join(p.Home, "consort.toml"), []byte(text), nil)
	if err != nil || len(c.MCP) != 5 {
		t.Errorf("%v\n%s", err, text)
	}
	some := &answers{Model: "m"}
	some.Servers, _ = found.Named([]string{"git", "arg"})
	var exposed []string
	for _, s := range some.Exposed() {
		exposed = append(exposed, s.Name+" "+strings.Join(s.Secrets, ","))
	}
	if !slices.Equal(exposed, []string{"arg command", "git environment.GITHUB_TOKEN"}) || !strings.Contains(some.Text(), "ghp-4711") {
		t.Errorf("exposed are %q", exposed)
	}
	if url, _ := found.Named([]string{"url"}); !slices.Equal(url[0].Secrets, []string{"url"}) {
		t.Errorf("the secrets of the URL are %q", url[0].Secrets)
	}
}

// TestSecretsInCommands: each usual form of a secret in a command or its environment is
// noticed.
func TestSecretsInCommands(t *testing.T) {
	for args, want := range map[string]string{
		`["mcp-remote", "https://x", "--header", "Authorization: Bearer 4711"]`: "command", `["-H", "X-Api-Key:4711"]`: "command",
		`["postgres://u:pw@host/db"]`: "command", `["--dsn=postgres://u:pw@host/db"]`: "command", `["https://x/?api_key=4711"]`: "command",
		`["run", "-e", "GITHUB_TOKEN=4711", "image"]`: "command", `["--token", "4711"]`: "command", `["--token=4711"]`: "command",
		`["--header", "Authorization: Bearer ${T}"]`: "", `["--token", "${T}"]`: "", `["-y", "key-server", "https://keys.example/x"]`: "",
		`["--token"]`: "", `["https://x/?page=2"]`: "", `["--dsn", "postgres://host/db"]`: "", `["C:\\keys"]`: "",
		`[], "env": {"DATABASE_URL": "postgres://u:pw@host/db"}`: "environment.DATABASE_URL",
	} {
		t.Setenv("T", "x")
		s, reason := newServer(&origin{}, "a", []byte(`{"command": "npx", "args": `+args+`}`))
		if s == nil {
			t.Errorf("%s: %s", args, reason)
			continue
		}
		if got := strings.Join(s.Secrets, ","); got != want {
			t.Errorf("%s: the secrets are %q, want %q", args, got, want)
		}
	}
}

// dialog asks with plain lines.
func dialog(t *testing.T, input string, preset *answers, final bool, found *survey) (*answers, string, error) {
	t.Helper()
	var out bytes.Buffer
	a, err := ask(t.Context(), lines{bufio.NewReader(strings.NewReader(input)), &out}, preset, final, found)
	return a, out.String(), err
}

func TestQuestions(t *testing.T) {
	found := findServers(home(t, everyHost))
	for name, test := range map[string]struct {
		input   string
		want    []string // of the text
		servers int
	}{
		"defaults":    {"\n\n\n\n", []string{"name = \"gpt-5-mini\"\n", "# The key is in the variable OPENAI_API_KEY.\n"}, len(found.Servers)},
		"Claude":      {"2\n\n\nnone\n", []string{"name = \"claude-sonnet-5\"\n", "# The key is in the variable ANTHROPIC_API_KEY.\n"}, 0},
		"another key": {"1\ngpt-6\nWORK_KEY\n1,3\n", []string{"name = \"gpt-6\"\n", "api_key = \"env:WORK_KEY\"\n"}, 2},
		"a server":    {"3\n\nqwen3\n\n2\n", []string{"name = \"qwen3\"\nbase_url = \"http://localhost:11434/v1\"\n", "# api_key ="}, 1},
		"wrong inputs": {
			"9\nx\n3\nlocal\nhttps://x/v1\n\nm\nsk-ant-key\nX_KEY\n99\nall\n",
			[]string{"base_url = \"https://x/v1\"\napi_key = \"env:X_KEY\"\n"}, len(found.Servers),
		},
	} {
		a, out, err := dialog(t, test.input, defaults("", "", &survey{}), false, found)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(a.Text(), want) {
				t.Errorf("%s: it lacks %q:\n%s", name, want, a.Text())
			}
		}
		if len(a.Servers) != test.servers {
			t.Errorf("%s: %d servers\n%s", name, len(a.Servers), out)
		}
	}
	if _, _, err := dialog(t, "1\n", defaults("", "", found), false, found); !errors.Is(err, ErrAborted) {
		t.Errorf("the end of the input: %v", err)
	}
	a, out, err := dialog(t, "\nnone\n", defaults("claude-x", "", found), true, found)
	if err != nil || a.Model != "claude-x" || strings.Contains(out, "Who runs") {
		t.Errorf("%v, %v\n%s", a, err, out)
	}
}

func FuzzServer(f *testing.F) {
	f.Add("name", `{"command": "x", "args": ["${A:-b}"], "env": {"K": "v"}, "cwd": "."}`)
	f.Add("a b", `{"url": "http://x", "headers": {"A": "b"}}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		s, reason := newServer(&origin{file: hostFile{host: "Cursor", dialect: dialect{key: "mcpServers"}}}, name, []byte(text))
		if s == nil || reason != "" {
			return
		}
		a := &answers{Model: "m", BaseURL: "http://localhost:1", Servers: []*server{s}}
		if _, err := config.Parse("consort.toml", []byte(a.Text()), nil); err != nil {
			t.Errorf("%v\n%s", err, a.Text())
		}
	})
}

// The tables in the comments of the file are valid, and explain how calls are approved.
func TestCommentsAreValid(t *testing.T) {
	text := (&answers{Model: "gpt-5-mini"}).Text()
	uncommented := regexp.MustCompile(`(?m)^# (\[|[a-z_]+ = )`).ReplaceAllString(text, "$1")
	cfg, err := config.Parse("consort.toml", []byte(uncommented), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, uncommented)
	}
	if cfg.Approval.Default == "" || len(cfg.Approval.Rules) != 1 || len(cfg.MCP) != 1 || cfg.History == nil {
		t.Errorf("a table is missing in %s", uncommented)
	}
}

// An address that was pasted behind the proposed one is refused.
func TestOneAddress(t *testing.T) {
	for text, valid := range map[string]bool{"http://localhost:11434/v1": true, "http://localhost:11434/v1https://api.example.com/v1": false} {
		if err := checkURL(text); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A question in plain lines ends with the context, as at SIGTERM.
func TestPlainQuestionsEnd(t *testing.T) {
	stdin, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close(); stdin.Close() })
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stderr.Close() })
	screen := terminal.NewScreen(stderr, stderr)
	screen.MakePlain()
	ctx, cancel := context.WithCancelCause(t.Context())
	terminated := errors.New("terminated")
	ended := make(chan error, 1)
	go func() {
		_, err := askerFor(ctx, stdin, screen).text(ctx, "The name of the model", "", notEmpty)
		ended <- err
	}()
	cancel(terminated)
	select {
	case err := <-ended:
		if !errors.Is(err, terminated) {
			t.Errorf("the error is %v, want %v", err, terminated)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question still waits")
	}
}

// The servers of a file that config does not import are written as tables, with their secrets.
func TestFilesThatCannotBeImported(t *testing.T) {
	server := func(env, more string) string {
		return `{"command": "npx", "args": ["db"], "env": {"DB_PASSWORD": "hunter2hunter2"` + env + `}` + more + `}`
	}
	for name, text := range map[string]string{
		"larger than an import may be": `{"history": "` + strings.Repeat("x", 2<<20) + `", "mcpServers": {"db": ` + server("", "") + `}}`,
		"a number":                     `{"mcpServers": {"db": ` + server(`, "PORT": 5432`, "") + `}}`,
		"true":                         `{"mcpServers": {"db": ` + server(`, "ON": true`, "") + `}}`,
		"null":                         `{"mcpServers": {"db": ` + server(`, "NONE": null`, "") + `}}`,
		"an unknown type":              `{"mcpServers": {"db": ` + server("", `, "type": "local"`) + `}}`,
	} {
		p := home(t, map[string]string{"home/.claude.json": text})
		found := findServers(p)
		if len(found.skipped) > 0 {
			t.Errorf("%s: %v", name, found.skipped)
		}
		a := defaults("m", "http://localhost:1/v1", found)
		c, err := config.Parse(filepath.Join(p.Home, "consort.toml"), []byte(a.Text()), nil)
		if err != nil || len(c.MCP) != 1 || len(a.Exposed()) != 1 {
			t.Errorf("%s: %v, exposed are %d\n%s", name, err, len(a.Exposed()), a.Text())
		}
	}
}

// A number or a boolean is the text that the file has.
func TestValuesOfVariables(t *testing.T) {
	s, reason := newServer(&origin{}, "a", []byte(`{"command": "x", "env": {"ROWS": 1000000, "BIG": 12345678901234567890, "ON": true, "NONE": null}}`))
	if want := "environment = {BIG = \"12345678901234567890\", ON = \"true\", ROWS = \"1000000\"}\n"; s == nil || !strings.HasSuffix(s.table, want) {
		t.Errorf("%s %+v, want %s", reason, s, want)
	}
	for _, value := range []string{`{"b": 1}`, `["b"]`, `[], "D": [], "C": [], "B": [], "E": []`} {
		if s, reason := newServer(&origin{}, "a", []byte(`{"command": "x", "env": {"A": `+value+`}}`)); s != nil || reason != "the value of the variable A is not text" {
			t.Errorf("%s: %+v, %q", value, s, reason)
		}
	}
}

// Windows PowerShell 5 writes a byte order mark.
func TestAByteOrderMark(t *testing.T) {
	p := home(t, map[string]string{"home/.cursor/mcp.json": "\ufeff" + `{"mcpServers": {"git": {"command": "x", "env": {"GITHUB_TOKEN": "ghp-4711"}}}}`})
	found := findServers(p)
	text := defaults("m", "http://localhost:1/v1", found).Text()
	if len(found.skipped) > 0 || !strings.Contains(text, "import = ") {
		t.Errorf("%v\n%s", found.skipped, text)
	}
	if c, err := config.Parse("consort.toml", []byte(text), nil); err != nil || len(c.MCP) != 1 {
		t.Error(err)
	}
}

// A server that --import names twice is taken over once.
func TestChosenTwice(t *testing.T) {
	found := findServers(home(t, everyHost))
	a := defaults("m", "", found)
	if err := choose(a, []string{"wind", "code", "wind"}, found); err != nil || len(a.Servers) != 2 || a.Servers[0].Name != "wind" {
		t.Errorf("%v, %v", a.Servers, err)
	}
}

// Only a file that is there exists; another fault is said as it is.
func TestMayWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := mayWrite(Options{Output: file}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{file: "exists already; to replace it, add --force", "consort\x00toml": "invalid argument"} {
		if err := mayWrite(Options{Output: path}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

// The next commands name the written file, unless they find it without that.
func TestNextCommands(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(top, "config"))
	t.Setenv("CONSORT_CONFIG", "")
	user := filepath.Join(top, "config", "consort", "consort.toml")
	spaced := filepath.Join(top, "my files", "consort.toml")
	for _, step := range []struct{ path, named, with string }{
		{path: user},
		{path: "consort.toml"},
		{path: user, with: " --config " + display.Word(user)},
		{path: spaced, with: " --config " + display.Word(spaced)},
		{path: "consort.toml", named: user, with: " --config consort.toml"},
		{path: user, named: user},
	} {
		t.Setenv("CONSORT_CONFIG", step.named)
		a := defaults("m", "http://localhost:1/v1", &survey{})
		if err := write(step.path, a); err != nil {
			t.Fatal(err)
		}
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		report(terminal.NewScreen(stderr, stderr), step.path, a, &survey{})
		said, err := os.ReadFile(stderr.Name())
		if want := "Then: consort check" + step.with + ", and consort chat" + step.with + "\n"; err != nil || !strings.HasSuffix(string(said), want) {
			t.Errorf("%+v: %s, %v, want %s", step, said, err, want)
		}
		stderr.Close()
	}
}
