// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/mcpadapter"
)

// markVar marks the processes of a test, children of children included.
const markVar = "CONSORT_TEST_MARK"

// marked lists the processes whose environment has the mark.
func marked(t *testing.T, mark string) (pids []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environments {
		// A process that has ended meanwhile, or belongs to another user, cannot be read.
		if env, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(env), "\x00"+markVar+"="+mark+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// TestRealProcessesEnd: when Close returns, no process is left, not even under a wrapper
// that passes no signals on, or right after connecting.
func TestRealProcessesEnd(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	shell := func(argv []string) []string {
		return []string{"/bin/sh", "-c", `"$@"; true`, "sh", argv[0], argv[1], argv[2]}
	}
	for name, argv := range map[string][]string{
		"plain":   servers.Everything(),
		"wrapped": shell(servers.Everything()),
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
			server := realEnsemble("everything", stdioSource(argv, mcpadapter.ClientOptions{Roots: []mcpadapter.Root{}}, map[string]string{markVar: mark}))
			if err := server.Connect(atLast(t)); err != nil {
				t.Fatal(err)
			}
			if len(marked(t, mark)) == 0 {
				t.Fatal("the test does not see the processes")
			}
			if err := server.Close(atLast(t)); err != nil {
				t.Error(err)
			}
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestRealEnvironment: a server sees only harmless variables of ours, and those that it
// was given.
func TestRealEnvironment(t *testing.T) {
	servers := realservers.Need(t)
	t.Setenv("OPENAI_API_KEY", "sk-do-not-tell")
	t.Setenv("LC_CTYPE", "C.UTF-8")
	given := map[string]string{"GIVEN": "a=b"}
	r := newRealRoster(t, realEnsemble("everything", stdioSource(servers.Everything(), mcpadapter.ClientOptions{}, given)))
	text := canister.TextOf(r.must(t, "everything__get-env", `{}`))
	var env map[string]string
	if err := json.Unmarshal([]byte(text), &env); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "do-not-tell") || env["GIVEN"] != "a=b" || env["LC_CTYPE"] != "C.UTF-8" || env["PATH"] != os.Getenv("PATH") {
		t.Errorf("the server sees %s", text)
	}
	delete(env, "GORACE") // inherited under the race detector alone
	harmless := []string{"GIVEN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP"}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(harmless, name) && !strings.HasPrefix(name, "LC_") {
			t.Errorf("the server sees %s", name)
		}
	}
}

// gathered opens a source when all of its group are about to be opened.
type gathered struct {
	ensemble.Source
	group *sync.WaitGroup
}

func (g gathered) Open(ctx context.Context) (ensemble.Connection, error) {
	g.group.Done()
	all := make(chan struct{})
	go func() {
		g.group.Wait()
		close(all)
	}()
	select {
	case <-all:
		return g.Source.Open(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestRealSideBySide: ten servers start side by side, none waiting for another.
func TestRealSideBySide(t *testing.T) {
	servers := realservers.Need(t)
	const many = 10
	mark := fmt.Sprintf("many-%d", time.Now().UnixNano())
	dir := t.TempDir()
	var group sync.WaitGroup
	group.Add(many)
	var ensembles []*ensemble.Ensemble
	for i := range many {
		source := stdioSource(servers.Memory(), mcpadapter.ClientOptions{}, map[string]string{
			markVar: mark, "MEMORY_FILE_PATH": filepath.Join(dir, fmt.Sprint(i)),
		})
		ensembles = append(ensembles, realEnsemble(fmt.Sprintf("memory-%d", i), gathered{source, &group}))
	}
	r := newRealRoster(t, ensembles...)
	if n := len(r.catalog(t).Tools()); n != many*len(memoryTools) {
		t.Errorf("%d tools, want %d", n, many*len(memoryTools))
	}
	if n := len(marked(t, mark)); n != many {
		t.Errorf("%d processes, want %d", n, many)
	}
	if err := r.Close(atLast(t)); err != nil {
		t.Error(err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
