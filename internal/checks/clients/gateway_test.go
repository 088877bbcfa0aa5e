// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// The command serves two third-party servers as one to a third-party client.
func TestGateway(t *testing.T) {
	servers := realservers.Need(t)
	const token = "token-of-the-gateway"
	url := launchGateway(t, fmt.Sprintf(`
[mcp.everything]
command = %s

[mcp.memory]
command = %s
environment = {MEMORY_FILE_PATH = %q}

[serve]
http = "127.0.0.1:0"
token = "env:GATEWAY_TOKEN"
`, list(servers.Everything()), list(servers.Memory()), filepath.Join(t.TempDir(), "graph.jsonl")), "GATEWAY_TOKEN="+token)

	type args = map[string]any
	var s callsSaw
	decode(t, runScript(t, servers, "calls.mjs", map[string]any{
		"modules": servers.Modules(), "url": url, "calls": []calls{
			{token, "everything__echo", args{"message": "through"}},
			{token, "everything__get-structured-content", args{"location": "Chicago"}},
			{token, "memory__create_entities", args{"entities": []args{{"name": "Ada", "entityType": "person", "observations": []string{"likes tea"}}}}},
			{token, "memory__search_nodes", args{"query": "tea"}},
			{token, "everything__echo", args{"massage": "through"}},
		},
	}), &s)
	if names := strings.Join(s.Tools, " "); !strings.Contains(names, "everything__echo") || !strings.Contains(names, "memory__read_graph") {
		t.Errorf("tools = %s", names)
	}
	for i, want := range []string{"Echo: through", `"temperature"`, `"Ada"`, `"likes tea"`} {
		if told := s.Results[i].text() + string(s.Results[i].StructuredContent); s.Results[i].IsError || !strings.Contains(told, want) {
			t.Errorf("result %d has no %s: %+v", i, want, s.Results[i])
		}
	}
	equal(t, "code of an argument that is not there", s.Results[4].code(), "INVALID_ARGUMENTS")
}

// list is a TOML list of strings.
func list(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, fmt.Sprintf("%q", word))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// programs is the folder of the command; withPrograms makes and removes it.
var programs string

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	return m.Run()
}

// built builds the command, for all tests.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "consort")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../../../cmd/consort").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building consort: %w\n%s", err, out)
	}
	return program, nil
})

// command returns the path of the command.
func command(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var servingAt = regexp.MustCompile(`serving at (http://\S+)`)

// launchGateway runs consort serve with a configuration until the test ends, and returns
// its URL. A signal ends it and the servers behind it.
func launchGateway(t *testing.T, toml string, environment ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "consort.toml"), []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command(t), "serve")
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "XDG_STATE_HOME="+dir), environment...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := servingAt.FindStringSubmatch(lines.Text()); found != nil {
				url <- found[1]
				continue
			}
			t.Logf("consort: %s", lines.Text())
		}
		ended <- cmd.Wait()
	}()
	select {
	case at := <-url:
		t.Cleanup(func() { endGateway(t, cmd, ended) })
		return at
	case err := <-ended:
		t.Fatalf("consort serve ended: %v", err)
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("consort serve does not say where it serves")
	}
	return ""
}

func endGateway(t *testing.T, cmd *exec.Cmd, ended <-chan error) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := <-ended; err != nil {
		t.Errorf("consort serve ended with: %v", err)
	}
}
