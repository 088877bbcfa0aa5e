// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/testing/parallelism"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/internal/testing/ramdisk"
)

func TestMain(m *testing.M) {
	Main(map[string]Engine{"run": Run, "local": Local, "program": Program(Run)})
	ramdisk.Use()
	parallelism.Set("6")
	os.Exit(withChildren(m))
}

// withChildren runs the tests. Under the race detector it first builds the program of the
// children without it, since they start by the hundred.
func withChildren(m *testing.M) int {
	if !raced.Enabled {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "killtable-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	childProgram = filepath.Join(dir, "child")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", childProgram)
	build.Env = raced.Unraced()
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the children: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// stores are empty ones of each kind.
var stores = map[string]func(tb testing.TB) string{
	"files":      func(tb testing.TB) string { return "files:" + In(tb, "store") },
	"SQLite":     func(tb testing.TB) string { return "sqlite:" + In(tb, "talks.db") },
	"PostgreSQL": func(tb testing.TB) string { return "postgres:" + pgtest.DSN(tb) },
}

// engines are the engines that need no server.
var engines = []string{"run", "local"}

// eachStore calls test for each store and engine.
func eachStore(t *testing.T, test func(t *testing.T, spec Spec)) {
	for name, open := range stores {
		for _, engine := range engines {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				test(t, Spec{Store: open(t), Engine: engine, Conversation: "talk"})
			})
		}
	}
}
