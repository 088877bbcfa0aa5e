// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reload"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reloading is a configuration that is changed while consort serve has it.
type reloading struct {
	*service
	path string
}

// serveReloading serves the tables over HTTP, with a health address and without a watch.
func serveReloading(t *testing.T, watch string, tables ...string) *reloading {
	t.Helper()
	path := file(
		t,
		append([]string{"[log]\nlevel = \"info\"\n[serve]\nhttp = \"127.0.0.1:0\"\nhealth = \"127.0.0.1:0\"\nwatch = " + watch + "\n"}, tables...)...,
	)
	return &reloading{serveWith(t, run{limit: 10 * time.Minute}, true, "--config", path), path}
}

// write replaces the configuration; the [serve] table stays as it is, with clients.
func (r *reloading) write(watch, clients string, tables ...string) {
	r.t.Helper()
	serve := "[log]\nlevel = \"info\"\n[serve]\nhttp = \"127.0.0.1:0\"\nhealth = \"127.0.0.1:0\"\nwatch = " + watch + "\n" + clients + "\n"
	if err := os.WriteFile(r.path, []byte(serve+strings.Join(tables, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload runs consort reload. It does not check that no process is left, since the server
// runs on.
func (r *reloading) reload(want exit.Status, args ...string) string {
	r.t.Helper()
	cmd := run{}.command(r.t.Context(), r.t, append([]string{"reload", "--config", r.path}, args...)...)
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != int(want) {
		r.t.Errorf("consort reload: status %d, want %d: %s", got, want, said)
	}
	return string(said)
}

// children returns the IDs of the processes that the server has started, by their first
// argument.
func (r *reloading) children() map[string]int {
	r.t.Helper()
	found := map[string]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(r.cmd.Process.Pid) {
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		process, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if words := strings.Split(strings.Trim(string(arguments), "\x00"), "\x00"); words[0] != "" {
			found[words[min(1, len(words)-1)]] = process
		}
	}
	return found
}

const clientAda, clientBen = `clients = [{token = "ada-0123456789abcdef"}]`, `clients = [{token = "ben-0123456789abcdef"}]`

// Servers that stay keep their process, those that go finish their calls, and clients are
// told; tokens change at once; a wrong file is refused with its line.
func TestReload(t *testing.T) {
	t.Parallel()
	table, folder := library(t, "")
	r := serveReloading(t, "false", clientAda, table, atlas(0))
	changed := make(chan struct{}, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	host, err := client.Connect(
		t.Context(),
		&mcp.StreamableClientTransport{Endpoint: r.url, HTTPClient: &http.Client{Transport: bearer("ada-0123456789abcdef")}},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if names := toolNames(t, host); len(names) != 5 {
		t.Errorf("the tools are %q", names)
	}
	before := r.children()
	result := make(chan string, 1)
	go func() { result <- called(t, host, "library__wait", `{}`) }()
	waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })

	r.write("false", strings.Replace(clientAda, "}]", `}, {token = "ben-0123456789abcdef"}]`, 1), atlas(0), satchel(0), "concurrent_starts = 3")
	// The key is in the last table: that is a mistake.
	wrong := r.reload(exit.Usage)
	contains(t, "the error", wrong, "consort.toml:", "unknown key", "keeps its configuration")
	if got := post(t, r.url, "Bearer ben-0123456789abcdef"); got != http.StatusUnauthorized {
		t.Errorf("a token of a configuration that was refused: %d", got)
	}
	r.write("false", strings.Replace(clientAda, "}]", `}, {token = "ben-0123456789abcdef"}]`, 1)+"\npage_size = 7", atlas(0), satchel(0))
	said := r.reload(exit.Done)
	contains(t, "what consort reload says", said, "added         satchel\n", "removed       library\n", "serve.clients", "needs restart serve.page_size\n")
	lacks(t, "what consort reload says", said, "ben-0123456789abcdef", "changed")
	<-changed
	after := r.children()
	if after["atlas"] != before["atlas"] || after["atlas"] == 0 || after["satchel"] == 0 {
		t.Errorf("the processes were %v and are %v", before, after)
	}
	if names := toolNames(t, host); slices.Contains(names, "library__wait") ||
		!slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "satchel__") }) {
		t.Errorf("the tools are %q", names)
	}
	if got := called(t, host, "library__echo", `{}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a call of a removed server: %s", got)
	}
	touch(filepath.Join(folder, "go"))
	if got := <-result; got != "done" {
		t.Errorf("the running call came to %s", got)
	}
	waitFor(t, "the end of the removed server", func() bool { return len(r.children()) == 2 })
	if got := post(t, r.url, "Bearer ben-0123456789abcdef"); got == http.StatusUnauthorized {
		t.Error("the new token does not work")
	}

	r.write("false", clientBen, strings.Replace(atlas(0), "command", "deny = [\"weather\"]\ncommand", 1), satchel(0))
	said = r.reload(exit.Done, "--json")
	var form struct {
		Processes []struct {
			Process                            int
			Added, Changed, Keys, NeedsRestart []string
		}
	}
	if err := json.Unmarshal([]byte(said), &form); err != nil || len(form.Processes) != 1 || form.Processes[0].Process != r.cmd.Process.Pid ||
		!slices.Equal(form.Processes[0].Changed, []string{"atlas"}) || !slices.Contains(form.Processes[0].Keys, "mcp.atlas.deny") {
		t.Errorf("%v: %s", err, said)
	}
	if got := post(t, r.url, "Bearer ada-0123456789abcdef"); got != http.StatusUnauthorized {
		t.Errorf("the old token: %d", got)
	}
	if again := r.children(); again["atlas"] == after["atlas"] || again["satchel"] != after["satchel"] {
		t.Errorf("the processes were %v and are %v", after, again)
	}
	contains(t, "the health", r.health(), `"ready":true`, `"name":"atlas","state":"ready"`, `"name":"satchel","state":"ready"`)
	if said = r.reload(exit.Done); !strings.Contains(said, "nothing has changed") {
		t.Errorf("without a change: %s", said)
	}
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
	contains(
		t, "the log", r.stderr.String(), "config.reloaded", "config.rejected", "config.restart.needed",
		`"added": ["satchel"]`, `"removed": ["library"]`, `"trigger": "command"`,
	)
	lacks(t, "the log", r.stderr.String(), "ada-0123456789abcdef", "ben-0123456789abcdef")
	if left, _ := os.ReadDir(filepath.Join(placeOf(t), "consort", "run")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	contains(t, "without a process", r.reload(exit.Failed), "no consort serve or worker of this user runs with")
}

// SIGHUP reloads, also one that comes during the start, and ends nothing during the drain.
func TestReloadOnSIGHUP(t *testing.T) {
	t.Parallel()
	table, folder := library(t, "")
	r := serveReloading(t, "false", table)
	host := r.connect("")
	r.write("false", "", table, atlas(0))
	r.signal(syscall.SIGHUP)
	waitFor(t, "a reload", func() bool { return strings.Contains(r.stderr.String(), `"trigger": "signal", "added": ["atlas"]`) })
	result := make(chan string, 1)
	go func() { result <- called(t, host, "library__wait", `{}`) }()
	waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
	r.signal(syscall.SIGTERM)
	waitFor(t, "draining", func() bool { return r.readyz(http.StatusServiceUnavailable) != "" })
	r.signal(syscall.SIGHUP)
	r.signal(syscall.SIGHUP)
	touch(filepath.Join(folder, "go"))
	if got := <-result; got != "done" {
		t.Errorf("the running call came to %s", got)
	}
	r.ends(exit.Done)

	// The signal comes while a server starts, which is not disturbed.
	folder = t.TempDir()
	slow := slowServer("slow", "60s", folder)
	r = serveReloading(t, "false", slow)
	waitFor(t, "a start", func() bool { return len(r.children()) == 1 })
	r.write("false", "", slow, satchel(0))
	r.signal(syscall.SIGHUP)
	waitFor(t, "a reload", func() bool { return strings.Contains(r.stderr.String(), `"trigger": "signal", "added": ["satchel"]`) })
	touch(filepath.Join(folder, "go"))
	waitFor(t, "the server", func() bool { return strings.Contains(r.health(), `"name":"slow","state":"ready"`) })
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
}

// slowServer is the table of a server that starts when the folder has a file named go.
func slowServer(name, timeout, folder string) string {
	script := fmt.Sprintf("while ! test -e %s/go; do sleep 0.05; done; exec %s atlas", folder, testserver)
	return fmt.Sprintf("[mcp.%s]\nconnect_timeout = %q\ncommand = [\"sh\", \"-c\", %q, \"slow\"]\n", name, timeout, script)
}

// A server that connects keeps neither the end of a removed server nor the next reload
// waiting.
func TestReloadDoesNotWaitForServers(t *testing.T) {
	t.Parallel()
	for _, watch := range []string{"false", "true"} {
		folder := t.TempDir()
		slow := slowServer("slow", "10m", folder)
		r := serveReloading(t, watch, clientAda, atlas(0))
		host := r.connect("ada-0123456789abcdef")
		r.write(watch, clientAda, slow)
		if watch == "false" {
			r.signal(syscall.SIGHUP)
		}
		waitFor(t, "the end of the removed server", func() bool { return len(toolNames(t, host)) == 0 })
		waitFor(t, "only the slow server", func() bool { now := r.children(); return len(now) == 1 && now["atlas"] == 0 })
		r.write(watch, clientBen, slow, satchel(0))
		if watch == "false" {
			contains(t, "what consort reload says", r.reload(exit.Done), "added         satchel\n", "serve.clients")
		}
		waitFor(t, "the new token", func() bool { return post(t, r.url, "Bearer ben-0123456789abcdef") != http.StatusUnauthorized })
		waitFor(t, "the log", func() bool { return strings.Contains(r.stderr.String(), `"added": ["satchel"]`) })
		touch(filepath.Join(folder, "go"))
		waitFor(t, "the slow server", func() bool { return strings.Contains(r.health(), `"name":"slow","state":"ready"`) })
		r.signal(syscall.SIGTERM)
		r.ends(exit.Done)
	}
}

// While the new process of a changed server starts, the former one takes the calls, also
// when newer reloads come; a new process that was never offered ends.
func TestReloadKeepsServersThatWork(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	slow := slowServer("atlas", "10m", folder)
	r := serveReloading(t, "false", clientAda, atlas(0))
	host := r.connect("ada-0123456789abcdef")
	works := func(when string) {
		t.Helper()
		if got := called(t, host, "atlas__weather", `{"city":"Oslo"}`); !strings.Contains(got, "snow") {
			t.Errorf("%s, a call comes to %s", when, got)
		}
	}
	works("at the start")
	first := r.children()["atlas"]
	hangUp := func(tables ...string) {
		t.Helper()
		r.write("false", clientAda, tables...)
		r.signal(syscall.SIGHUP)
	}
	hangUp(slow)
	waitFor(t, "the new process", func() bool { return len(r.children()) == 2 })
	hangUp(slow, satchel(0))
	waitFor(t, "the end of the first reload", func() bool { return strings.Contains(r.stderr.String(), `"changed": ["atlas"]`) })
	if r.children()["atlas"] != first {
		t.Fatal("the former process has ended")
	}
	works("after a newer reload")
	hangUp(atlas(0))
	waitFor(t, "the end of the process that was never offered", func() bool { now := r.children(); return len(now) == 1 && now["atlas"] != first })
	works("after the change was taken back")

	former := r.children()["atlas"]
	hangUp(slow)
	waitFor(t, "the new process", func() bool { return len(r.children()) == 2 })
	hangUp(slow, "# no change")
	waitFor(t, "the end of that reload", func() bool { return strings.Count(r.stderr.String(), `"changed": ["atlas"]`) == 3 })
	works("before the new process is ready")
	touch(filepath.Join(folder, "go"))
	waitFor(t, "only the new process", func() bool { now := r.children(); return len(now) == 1 && now["atlas"] != former })
	works("when the new process is ready")
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
}

// A file that is empty, or identifies nobody any longer, is refused; open = true allows the
// latter.
func TestReloadRefusesToOpen(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "false", clientAda, atlas(0))
	r.write("false", "", atlas(0))
	contains(t, "without clients", r.reload(exit.Usage), "clients would no longer be identified: restart the process")
	if err := os.WriteFile(r.path, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, "an empty file", r.reload(exit.Usage), "the configuration file is empty")
	r.signal(syscall.SIGHUP)
	waitFor(t, "the signal", func() bool { return strings.Contains(r.stderr.String(), `"trigger": "signal"`) })
	if got := post(t, r.url, ""); got != http.StatusUnauthorized || len(r.children()) != 1 {
		t.Errorf("without a token: %d; the servers are %v", got, r.children())
	}
	r.write("false", "open = true", atlas(0))
	r.reload(exit.Done)
	if got := post(t, r.url, ""); got == http.StatusUnauthorized {
		t.Error("open = true is refused")
	}
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
}

// A change that adds the address of HTTP, and keys that need it, is put into effect as far as it can be.
func TestReloadAddsHTTP(t *testing.T) {
	t.Parallel()
	path := file(t, "[serve]\ngrpc = \"127.0.0.1:0\"\nwatch = false\n", atlas(0))
	r := &reloading{serve(t, false, "--config", path), path}
	r.overGRPC()
	const added = "[serve]\ngrpc = \"127.0.0.1:0\"\nwatch = false\nhttp = \"127.0.0.1:0\"\nhosts = [\"consort.example\"]\n"
	replace := func(text string) {
		if err := os.WriteFile(path, []byte(text+atlas(0)+satchel(0)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(added)
	contains(t, "what consort reload says", r.reload(exit.Done), "added         satchel\n", "serve.hosts", "needs restart serve.http\n")
	replace(strings.Replace(added, "http = \"127.0.0.1:0\"\n", "", 1))
	contains(t, "hosts without http", r.reload(exit.Usage), "serve.hosts: only for serving over HTTP")
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
}

// Without a configuration file, SIGHUP is answered too: it reads nothing, and ends the
// process if the terminal is gone.
func TestHangUpWithoutAFile(t *testing.T) {
	t.Parallel()
	s := serve(t, true, "--http", "127.0.0.1:0", "--set", "mcp.none.command=['x']", "--set", "mcp.none.enabled=false")
	s.signal(syscall.SIGHUP)
	waitFor(t, "a refusal", func() bool {
		return strings.Contains(s.stderr.String(), "there is no configuration file to read again")
	})
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// A file that changes is read, also one that is reached through the links of a ConfigMap
// of Kubernetes; one that is wrong changes nothing.
func TestReloadOfChangedFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	version := func(name string, tables ...string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "[log]\nlevel = \"info\"\n[serve]\nhttp = \"127.0.0.1:0\"\n" + strings.Join(tables, "\n")
		if err := os.WriteFile(filepath.Join(folder, name, "consort.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(folder, "..data")
		if os.Symlink(name, data+"_tmp") != nil || os.Rename(data+"_tmp", data) != nil {
			t.Fatal("no links")
		}
	}
	version("..1", clientAda)
	path := filepath.Join(folder, "consort.toml")
	if err := os.Symlink(filepath.Join("..data", "consort.toml"), path); err != nil {
		t.Fatal(err)
	}
	s := serve(t, true, "--config", path)
	version("..2", clientBen, atlas(0))
	waitFor(t, "a reload", func() bool { return strings.Contains(s.stderr.String(), `"trigger": "file", "added": ["atlas"]`) })
	if a, b := post(t, s.url, "Bearer ada-0123456789abcdef"), post(t, s.url, "Bearer ben-0123456789abcdef"); a != http.StatusUnauthorized || b == a {
		t.Errorf("the old token: %d; the new one: %d", a, b)
	}
	version("..3", clientAda, "[mcp.atlas]\ncomand = [\"x\"]")
	waitFor(t, "a refusal", func() bool { return strings.Contains(s.stderr.String(), "config.rejected") })
	contains(t, "the log", s.stderr.String(), "consort.toml:7:1: mcp.atlas.comand: unknown key")
	if got := called(t, s.connect("ben-0123456789abcdef"), "atlas__weather", `{"city":"Oslo"}`); !strings.Contains(got, "snow") {
		t.Errorf("the weather: %s", got)
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// editsVar is the number of random edits of TestReloadUnderLoad; see docs/soak.md.
const editsVar = "CONSORT_TEST_EDITS"

// While the configuration changes at random, each call gets its result, the server that
// stays keeps its process, and nothing is left behind.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	edits := 30
	if given, err := strconv.Atoi(os.Getenv(editsVar)); err == nil {
		edits = given
	}
	file := filepath.Join(t.TempDir(), "stderr")
	stays := strings.Replace(atlas(0), "command = [", `command = ["sh", "-c", "exec \"$0\" \"$@\" 2>`+file+`", `, 1)
	r := serveReloading(t, "true", clientAda, stays)
	host := r.connect("ada-0123456789abcdef")
	waitFor(t, "a server", func() bool { return len(r.children()) == 1 })
	before, files := r.children(), r.openFiles()
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	made := new(atomic.Int64)
	for range 2 {
		callers.Go(func() {
			for ctx.Err() == nil {
				hangs := time.AfterFunc(limit/2, func() { r.dump(before["atlas"], file) })
				got := called(t, host, "atlas__weather", `{"city":"Oslo"}`)
				if hangs.Stop(); !strings.Contains(got, "snow") {
					t.Errorf("a call of the server that stays: %s", got)
				}
				if got := called(t, host, "satchel__pack", `{"items":["hat"]}`); !strings.Contains(got, "hat") && !strings.HasPrefix(got, "error: ") {
					t.Errorf("a call of the server that comes and goes: %s", got)
				}
				made.Add(1)
			}
		})
	}
	random := rand.New(rand.NewPCG(3, 4))
	socket := filepath.Join(placeOf(t), "consort", "run")
	for i := range edits {
		tables := []string{"# edit " + strconv.Itoa(i), stays}
		if random.IntN(3) > 0 {
			tables = append(tables, strings.Replace(satchel(0), "command", fmt.Sprintf("max_tools = %d\ncommand", 5+random.IntN(3)), 1))
		}
		invalid := random.IntN(6) == 0
		if invalid {
			tables = append(tables, "[mcp.wrong]\ncommand = 1")
		}
		token := fmt.Sprintf("client-%d-0123456789abcdef", i)
		r.write("true", strings.Replace(clientAda, "}]", `}, {token = "`+token+`"}]`, 1), tables...)
		outcomes, err := reload.Ask(ctx, socket, r.path)
		if err != nil || len(outcomes) != 1 || (outcomes[0].Error != "") != invalid {
			t.Errorf("edit %d: %+v, %v", i, outcomes, err)
		}
		if got := post(t, r.url, "Bearer "+token); (got == http.StatusUnauthorized) != invalid {
			t.Errorf("edit %d: the token of the edit: %d", i, got)
		}
	}
	cancel()
	callers.Wait()
	r.write("true", clientAda, stays)
	r.reload(exit.Done)
	waitFor(t, "the end of the other servers", func() bool { return len(r.children()) == 1 })
	if after := r.children(); after["atlas"] != before["atlas"] {
		t.Errorf("the processes were %v and are %v", before, after)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	waitFor(t, "files that are closed", func() bool { return r.openFiles() <= files+3 })
	t.Logf("%d edits, %d rounds of calls", edits, made.Load())
	host.Close()
	r.signal(syscall.SIGTERM)
	r.ends(exit.Done)
}

// dump makes a server and its gateway write what they are doing, and ends both: a call has hung.
func (r *reloading) dump(server int, file string) {
	process, err := os.FindProcess(server)
	if err == nil {
		err = process.Signal(syscall.SIGQUIT)
	}
	if err != nil {
		r.t.Error(err)
	}
	var text []byte
	waitFor(r.t, "the end of the server", func() bool {
		text, _ = os.ReadFile(file)
		return r.children()["atlas"] != server
	})
	r.t.Errorf("a call hangs; the server: %s", text)
	r.signal(syscall.SIGQUIT)
}

// openFiles returns how many files the server has open.
func (r *reloading) openFiles() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	return len(entries)
}
