// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	configserve "github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
)

// guardedConfig returns an authorization server and a configuration with a server that
// wants its tokens.
func guardedConfig(t *testing.T, b authserver.Behaviour) (s *authserver.Server, file string) {
	t.Helper()
	scripted := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, `{"content":[{"type":"text","text":"it was written"}]}`)
		}
		return m.Method == "tools/call"
	})
	s, resource := authserver.Start(t, b, scripted)
	file = filepath.Join(t.TempDir(), "consort.toml")
	if err := os.WriteFile(file, []byte("[mcp.notes]\nurl = \""+resource+"\"\n\n[mcp.notes.oauth]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// talk is a run of the command that a person watches: its output, and what it reads.
type talk struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *bufio.Reader
	stdin io.WriteCloser
	seen  strings.Builder
}

func startTalk(t *testing.T, args ...string) *talk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	t.Cleanup(func() { reader.Close() })
	k := &talk{t: t, cmd: run{env: []string{"DISPLAY=", "WAYLAND_DISPLAY="}}.command(ctx, t, args...), out: bufio.NewReader(reader)}
	k.cmd.Stdout, k.cmd.Stderr = writer, writer
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return k
}

// until reads the output until it has text that matches, and returns the match.
func (k *talk) until(pattern string) string {
	k.t.Helper()
	wanted := regexp.MustCompile(pattern)
	for {
		line, err := k.out.ReadString('\n')
		k.seen.WriteString(line)
		if found := wanted.FindString(line); found != "" {
			return found
		}
		if err != nil {
			_ = k.cmd.Wait()
			k.t.Fatalf("%v before %s came: %s", err, pattern, &k.seen)
		}
	}
}

// ends expects the command to succeed.
func (k *talk) ends() {
	k.t.Helper()
	_, _ = io.Copy(&k.seen, k.out)
	if err := k.cmd.Wait(); err != nil {
		k.t.Errorf("%v: %s", err, &k.seen)
	}
}

// logIn runs consort login and agrees in the browser.
func logIn(t *testing.T, file string) {
	t.Helper()
	k := startTalk(t, "login", "notes", "--config", file)
	to := authserver.Redirect(t, http.DefaultTransport, k.until(linkPattern))
	response, err := http.Get(to.String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	k.ends()
	contains(t, "login", k.seen.String(), "logged in at notes", "renewed by itself")
}

const linkPattern = `^http://127\.0\.0\.1:\S+/authorize\?\S+`

func TestLoginCommand(t *testing.T) {
	t.Parallel()
	s, file := guardedConfig(t, authserver.Behaviour{})

	report := consort(t, "check", "--offline", "--config", file).expect(t, exit.Tool)
	contains(t, "check", report.stdout, "needs login", "consort login notes --config "+file)
	call := consort(t, "call", "notes", "write", "{}", "--config", file)
	if call.status == 0 {
		t.Fatal("a call without a login works")
	}
	contains(t, "the call", call.stderr+call.stdout, "UNAUTHORIZED: ", "consort login notes --config "+file)
	list := consort(t, "logins", "--config", file).expect(t, exit.Done)
	contains(t, "logins", list.stdout, "notes", "needs login", "consort login notes --config "+file)

	logIn(t, file)

	called := consort(t, "call", "notes", "write", "{}", "--config", file).expect(t, exit.Done)
	contains(t, "the call", called.stdout, "it was written")
	consort(t, "check", "--offline", "--config", file).expect(t, exit.Done)
	list = consort(t, "logins", "--config", file, "--json").expect(t, exit.Done)
	var logins reports.LoginList
	if err := json.Unmarshal([]byte(list.stdout), &logins); err != nil || len(logins.Logins) != 1 || logins.Logins[0].State != reports.LoggedIn ||
		logins.Logins[0].Issuer != s.Issuer {
		t.Errorf("logins: %v %s", err, list.stdout)
	}
	if n := s.Count("/authorize"); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
	out := consort(t, "logout", "notes", "--config", file).expect(t, exit.Done)
	contains(t, "logout", out.stdout, "logged out of notes")
	contains(t, "check", consort(t, "check", "--offline", "--config", file).expect(t, exit.Tool).stdout, "needs login")
	consort(t, "logout", "notes", "--config", file).expect(t, exit.Usage)
}

// Models and clients do not see where the configuration is.
func TestLoginHintForOthers(t *testing.T) {
	const full, short = "type: consort login notes --config work.toml", "type: consort login notes"
	for name, test := range map[string]struct {
		assemble func(*program, *config.Config) (*config.Assembly, error)
		want     string
	}{
		"for a person": {func(p *program, cfg *config.Config) (*config.Assembly, error) { return p.assemble(cfg, interaction{}) }, full},
		"for a model":  {func(p *program, cfg *config.Config) (*config.Assembly, error) { return p.withModel(cfg, interaction{}) }, short},
		"for a gateway": {func(p *program, cfg *config.Config) (*config.Assembly, error) {
			return assembleServed(t.Context(), p, cfg, interaction{})
		}, short},
	} {
		p := newProgram(nil, os.Stdout, os.Stderr)
		p.location.Config.File = "work.toml"
		assembly, err := test.assemble(p, &config.Config{Model: &config.Model{Name: values.Plain("m"), APIKey: values.Plain("key")}, Serve: &configserve.Options{}})
		if err != nil {
			t.Fatal(name, err)
		}
		if got := p.assembling.LoginHint("notes"); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		if err := p.close(assembly); err != nil {
			t.Error(name, err)
		}
	}
}

func TestLoginWithACode(t *testing.T) {
	t.Parallel()
	s, file := guardedConfig(t, authserver.Behaviour{Device: true})
	k := startTalk(t, "login", "notes", "--no-browser", "--config", file)
	if line := k.until(`.*enter the code ABCD-EFGH`); !strings.Contains(line, s.Issuer+"/enter") {
		t.Errorf("it prints %q", line)
	}
	s.Enter()
	k.ends()
}

func TestLoginByPasting(t *testing.T) {
	t.Parallel()
	_, file := guardedConfig(t, authserver.Behaviour{})
	k := startTalk(t, "login", "notes", "--no-browser", "--config", file)
	to := authserver.Redirect(t, http.DefaultTransport, k.until(linkPattern))
	k.until("Paste its address")
	_, _ = io.WriteString(k.stdin, to.String()+"\n")
	k.ends()
}

// Without a keyring, [logins] key = "keyring" is an error before the person logs in, and
// "auto" uses the file.
func TestLoginWithoutKeyring(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("each user has a keyring here")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	s, file := guardedConfig(t, authserver.Behaviour{})
	base, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	with := func(place string) {
		if err := os.WriteFile(file, append([]byte("[logins]\nkey = \""+place+"\"\n"), base...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with("keyring")
	contains(
		t, "login", consort(t, "login", "notes", "--config", file).expect(t, exit.Failed).stderr,
		"the keyring of the system cannot be used", `set [logins] key = "file"`,
	)
	if n := s.Count("/authorize"); n != 0 {
		t.Errorf("the person was asked %d times", n)
	}
	with("auto")
	k := startTalk(t, "login", "notes", "--config", file)
	k.until("The system has no keyring that can be used")
	response, err := http.Get(authserver.Redirect(t, http.DefaultTransport, k.until(linkPattern)).String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	k.ends()
	with("elsewhere")
	contains(t, "a wrong place", consort(t, "logins", "--config", file).expect(t, exit.Usage).stderr, `"file", "keyring" or "auto"`)
}

func TestLoginErrors(t *testing.T) {
	t.Parallel()
	other := file(t, atlas(0))
	s, file := guardedConfig(t, authserver.Behaviour{Challenges: []string{"plain"}})
	contains(t, "an unknown server", consort(t, "login", "other", "--config", file).expect(t, exit.Usage).stderr, `"other"`, "notes")
	contains(t, "a server without PKCE", consort(t, "login", "notes", "--config", file).expect(t, exit.Failed).stderr, "S256")
	s.Fail(func(*http.Request) int { return 503 })
	contains(t, "no authorization server", consort(t, "login", "notes", "--config", file).expect(t, exit.Failed).stderr, "503")
	plain := filepath.Join(t.TempDir(), "plain.toml")
	if err := os.WriteFile(plain, []byte("[mcp.open]\nurl = \"http://127.0.0.1:1/mcp\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, "a server without a table", consort(t, "login", "open", "--config", plain).expect(t, exit.Usage).stderr, "[mcp.open.oauth]")
	short := run{env: []string{"CONSORT_LOGIN_KEY=short"}}
	short.consort(t, "tools", "--config", other).expect(t, exit.Done) // it needs no login
	contains(t, "a short key", short.consort(t, "logins", "--config", file).expect(t, exit.Usage).stderr, "CONSORT_LOGIN_KEY", "openssl")
}
