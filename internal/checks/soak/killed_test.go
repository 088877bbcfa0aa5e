// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// embedderVar makes this binary a program that has servers; it is their mark.
const embedderVar = "CONSORT_SOAK_EMBEDDER"

// promised is how soon no server is left of a program that was killed.
const promised = 5 * time.Second

// households are the servers of the embedder, and how many processes each is.
var households = []struct {
	name      string
	rules     []faultserver.Rule
	wrapped   bool // in a shell, whose child the server is
	starting  bool // permanently
	processes int
}{
	{name: "plain", processes: 1},
	{name: "stubborn", rules: []faultserver.Rule{{Fault: "ignore-term", At: "start"}}, processes: 1},
	{name: "deaf", rules: []faultserver.Rule{{Fault: "stop-reading", At: "between-calls"}}, processes: 1},
	{name: "wrapped", wrapped: true, processes: 2},
	{name: "starting", rules: []faultserver.Rule{{Fault: "silence", At: "start"}}, starting: true, processes: 1},
}

// TestEmbedderKilled: kill -9 on a program leaves no server of it, whatever
// the server refuses, and also in the middle of its start. Not promised is the
// end of a server's own children that do not heed the end of their input; see
// docs/rough-edges.md.
func TestEmbedderKilled(t *testing.T) {
	mark := fmt.Sprintf("embedder-%d-%d", os.Getpid(), time.Now().UnixNano())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), embedderVar+"="+mark)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer killMarked(mark)
	guard := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the program says %q, %v", line, err)
	}
	want := 0
	for _, h := range households {
		want += h.processes
	}
	if !eventually(patience, func() bool { return len(marked(mark)) == want }) {
		t.Fatalf("%d processes of servers, want %d", len(marked(mark)), want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	if !eventually(promised, func() bool { return len(marked(mark)) == 0 }) {
		t.Errorf("%s after the program was killed, %d of %d processes are left", promised, len(marked(mark)), want)
	}
	t.Logf("%d processes were gone after %s", want, time.Since(killed).Round(time.Millisecond))
}

// killMarked ends processes that a failed test would leave behind.
func killMarked(mark string) {
	for _, pid := range marked(mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// embed is the program: it starts its servers, has a call run in each of them,
// says so, and waits to be killed.
func embed() int {
	forgotten := time.After(2 * patience)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, h := range households {
		argv := []string{os.Args[0]}
		if h.wrapped {
			argv = []string{"/bin/sh", "-c", `"$@"; true`, "sh", os.Args[0]}
		}
		name, script, _ := strings.Cut(faultserver.Script{Rules: h.rules}.Environ(), "=")
		source := mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{Environment: map[string]string{
			name: script, markVar: os.Getenv(embedderVar), "GORACE": "atexit_sleep_ms=0",
		}})
		e := ensemble.New(h.name, source, &ensemble.Options{ConnectTimeout: patience})
		if h.starting {
			go e.Connect(context.Background())
			continue
		}
		if err := keepBusy(ctx, e); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println("ready")
	<-forgotten
	return 1
}

// keepBusy has a server answer one call, and then work on another.
func keepBusy(ctx context.Context, e *ensemble.Ensemble) error {
	roster, err := ensemble.NewRoster(e)
	if err != nil {
		return err
	}
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		return err
	}
	echo, ok := catalog.Find(ensemble.NameFor(e.Name(), "echo"))
	if !ok {
		return fmt.Errorf("%s offers no echo: %v", e.Name(), catalog.Away())
	}
	if _, err := echo.Invoke(ctx, &invoker.Call{Arguments: []byte(`{"text":"here"}`)}); err != nil {
		return err
	}
	wait, _ := catalog.Find(ensemble.NameFor(e.Name(), "wait"))
	go wait.Invoke(context.Background(), &invoker.Call{Arguments: []byte(`{}`)})
	return nil
}
