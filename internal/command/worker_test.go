// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/gateway"
)

// workerVar makes this test binary a worker with the configuration that it names, for an
// engine that has nothing to do.
const workerVar = "CONSORT_TEST_WORKER"

func beWorker(path string) int {
	idle := gateway.Engine{Name: gateway.Temporal, Work: func(ctx context.Context, _ string, _ gateway.Parts, ready func()) error {
		ready()
		<-ctx.Done()
		return nil
	}}
	return Main(context.Background(), []string{"worker", "--temporal", "here", "--config", path}, os.Stdin, os.Stdout, os.Stderr, WithEngine(idle))
}

// A worker reads its configuration again like a serving process: when the file changes, at
// SIGHUP, and for consort reload. A configuration that is wrong, or without a model, changes
// nothing. The keys for clients are no mistake: it shares the file with a serving process.
func TestWorkerReloads(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "consort.toml")
	write := func(tables ...string) {
		t.Helper()
		text := "[log]\nlevel = \"info\"\n[history]\npath = \"history.db\"\n[serve]\nhttp = \"127.0.0.1:0\"\nhosts = [\"a\"]\n" + clientAda + "\n" + strings.Join(tables, "\n")
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	scripted := model(t)
	write(scripted)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	usual := run{}.command(t.Context(), t) // for its environment
	w := &service{t: t, cmd: exec.CommandContext(t.Context(), self)}
	w.cmd.Env, w.cmd.Dir, w.cmd.Stderr = append(usual.Env, workerVar+"="+path), folder, &w.stderr
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.said = io.TeeReader(stdout, &w.stdout)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cmd.Process.Kill() })
	sees := func(parts ...string) {
		t.Helper()
		for _, part := range parts {
			waitFor(t, part, func() bool { return strings.Contains(w.stderr.String(), part) })
		}
	}
	sees("working for temporal at here")
	write(scripted, atlas(0))
	sees(`"trigger": "file", "added": ["atlas"]`)
	write(atlas(0))
	sees("there is no [model] table any more")
	write(scripted, atlas(0), "[mcp.second]\ncomand = ['x']")
	sees("comand: unknown key")
	w.signal(syscall.SIGHUP)
	sees(`"trigger": "signal"`)
	write(scripted)
	sees(`"removed": ["atlas"]`)
	contains(t, "consort reload", consortReload(t, path), "nothing has changed")
	w.signal(syscall.SIGTERM)
	w.ends(exit.Done)
}

// consortReload runs consort reload. It does not check that no process is left.
func consortReload(t *testing.T, path string) string {
	t.Helper()
	said, err := run{}.command(t.Context(), t, "reload", "--config", path).CombinedOutput()
	if err != nil {
		t.Errorf("consort reload: %v", err)
	}
	return string(said)
}
