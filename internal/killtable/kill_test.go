// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import "testing"

const page = "../../docs/durability.md"

func TestKilledFiles(t *testing.T)      { killed(t, "files") }
func TestKilledSQLite(t *testing.T)     { killed(t, "SQLite") }
func TestKilledPostgreSQL(t *testing.T) { killed(t, "PostgreSQL") }

func killed(t *testing.T, store string) {
	for _, engine := range engines {
		name := store
		if engine == "local" {
			name += ", in-process"
		}
		Column{Name: name, Engine: engine, Store: stores[store]}.Test(t, page)
	}
}
