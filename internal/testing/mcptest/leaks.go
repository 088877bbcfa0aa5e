// SPDX-License-Identifier: Apache-2.0

package mcptest

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if there are more goroutines or files at its end than now.
func NoLeaks(t *testing.T) {
	t.Helper()
	if r, w, err := os.Pipe(); err == nil { // the first opens files of the runtime's own
		r.Close()
		w.Close()
	}
	goroutines, files := runtime.NumGoroutine(), len(openFiles())
	t.Cleanup(func() {
		if !Eventually(func() bool { return runtime.NumGoroutine() <= goroutines }) {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Errorf("%d goroutines, %d at the start:\n%s", runtime.NumGoroutine(), goroutines, &stacks)
		}
		if !Eventually(func() bool { return len(openFiles()) <= files }) {
			t.Errorf("%d files at the start, now: %q", files, openFiles())
		}
	})
}

// openFiles lists the files of this process, or none where one cannot see them.
func openFiles() (files []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		file, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		files = append(files, file)
	}
	return files
}

// Eventually reports whether a condition came true in time.
func Eventually(condition func() bool) bool {
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
}
