// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"slices"
	"testing"

	"github.com/consort-go/consort/internal/testing/raced"
)

const page = "../../../docs/durability.md"

func TestKilledFiles(t *testing.T)      { killed(t, "files") }
func TestKilledSQLite(t *testing.T)     { killed(t, "SQLite") }
func TestKilledPostgreSQL(t *testing.T) { killed(t, "PostgreSQL") }

// killed does all columns of a store, or one if CONSORT_KILLED is not set and the tests do not have the race detector.
// The engine carries on whatever it finds, and so has a store for each conversation; without
// one, all of them share one.
func killed(t *testing.T, store string) {
	t.Parallel()
	if raced.Enabled && store != "files" {
		t.Skip("the processes that die do not have the race detector; .ci/run has the whole table")
	}
	shared := stores[store](t)
	first := slices.Index([]string{"files", "SQLite", "PostgreSQL"}, store)
	Column{Name: store, Engine: "run", API: first, Store: func(testing.TB) string { return shared }}.Test(t, page)
	if raced.Enabled || Many() {
		Column{Name: store + ", in-process", Engine: "local", API: first, Store: stores[store]}.Test(t, page)
	}
}
