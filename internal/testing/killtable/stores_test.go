// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"os"
	"testing"

	"github.com/consort-go/consort/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	Main(map[string]Engine{"run": Run, "local": Local, "program": Program(Run)})
	os.Exit(m.Run())
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
