// SPDX-License-Identifier: Apache-2.0

//go:build unix

package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker/audit"
)

// TestMain lets the test binary be the processes that the tests need.
func TestMain(m *testing.M) {
	switch os.Getenv("AUDIT_TEST") {
	case "write":
		writeForEver(os.Getenv("AUDIT_FILE"))
	case "full":
		writeUntilFull(os.Getenv("AUDIT_FILE"))
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST="+role, "AUDIT_FILE="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// writeForEver writes records from several goroutines and says which were kept.
func writeForEver(path string) {
	file, err := audit.OpenFile(path, &audit.FileOptions{NoSync: os.Getenv("AUDIT_NOSYNC") != ""})
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for writer := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", writer, n)
				if err := file.Record(context.Background(), &audit.Record{Tool: name, Error: strings.Repeat("x", 1000*(n%8))}); err != nil {
					panic(err)
				}
				_, _ = fmt.Fprintf(os.Stdout, "%s\n", name) // one write(2)
			}
		})
	}
	all.Wait()
}

// A process is killed in the middle of writing, over and over: every record
// that it was told is kept is there, once.
func TestKilled(t *testing.T) {
	for _, nosync := range []string{"", "1"} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		acknowledged := map[string]int{}
		for round := range 5 {
			cmd := child(t, "write", path)
			cmd.Env = append(cmd.Env, "AUDIT_NOSYNC="+nosync)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			scanner := bufio.NewScanner(out)
			for n := 0; scanner.Scan(); n++ {
				acknowledged[scanner.Text()]++
				if n == 100*(round+1) {
					_ = cmd.Process.Kill() // output written before is still read
				}
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v", err)
			}
		}
		names, errs := tools(t, path)
		there := map[string]int{}
		for _, name := range names {
			there[name]++
		}
		for name, times := range acknowledged {
			if there[name] < times {
				t.Errorf("%s was kept %d times and is there %d times", name, times, there[name])
			}
		}
		if len(errs) > 5 || len(acknowledged) < 100 {
			t.Errorf("%d records were kept; %v", len(acknowledged), errs)
		}
	}
}

// writeUntilFull writes until the file may not grow, and goes on when it may.
func writeUntilFull(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	var limit syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	file, err := audit.OpenFile(path, nil)
	check(err)
	grow := func(to uint64) {
		limit.Cur = to
		check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
	record := func(tool string) error {
		return file.Record(context.Background(), &audit.Record{Tool: tool, Error: strings.Repeat("x", 500)})
	}
	grow(1000)
	check(record("first"))
	for range 3 { // the first writes half a line, the others nothing
		if err := record("lost"); err == nil || !strings.Contains(err.Error(), "file too large") || !strings.Contains(err.Error(), path) {
			check(fmt.Errorf("a record that does not fit gives %v", err))
		}
	}
	grow(limit.Max)
	check(record("last"))
	check(file.Close())
	fmt.Println("done")
	os.Exit(0)
}

// A full disk is an error, and a half-written record does not damage later ones.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	out, err := child(t, "full", path).Output()
	if err != nil || string(out) != "done\n" {
		t.Fatalf("%v: %s", err, out)
	}
	names, errs := tools(t, path)
	if got := strings.Join(names, ","); got != "first,last" || len(errs) != 1 || !strings.Contains(errs[0].Error(), "line 2") {
		t.Errorf("the records are %s; %v", got, errs)
	}
}
