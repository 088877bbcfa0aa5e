// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
)

// account is what this program holds.
type account struct {
	goroutines int
	files      int
	children   int
}

// takeAccount counts after the runtime has opened its long-lived resources: its poller,
// the resolver, the handles of processes.
func takeAccount(t *testing.T) account {
	t.Helper()
	if listener, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		listener.Close()
	}
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	return account{runtime.NumGoroutine(), len(openFiles()), len(children())}
}

// settle fails the test if there is more in the end than at the beginning.
func (before account) settle(t *testing.T) account {
	t.Helper()
	if !eventually(patience/4, func() bool { return runtime.NumGoroutine() <= before.goroutines }) {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Errorf("%d goroutines, %d at the start:\n%s", runtime.NumGoroutine(), before.goroutines, &stacks)
	}
	if !eventually(patience/4, func() bool { return len(openFiles()) <= before.files }) {
		t.Errorf("%d files at the start, now: %q", before.files, openFiles())
	}
	if !eventually(patience/4, func() bool { return len(children()) <= before.children }) {
		t.Errorf("%d child processes at the start, now: %d", before.children, children())
	}
	return account{runtime.NumGoroutine(), len(openFiles()), len(children())}
}

// openFiles lists the files of this process.
func openFiles() (files []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if file, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil { // not the directory's own
			files = append(files, file)
		}
	}
	return files
}

// heap returns the live bytes on the heap.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // objects that the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
