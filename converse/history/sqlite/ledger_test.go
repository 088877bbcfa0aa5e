// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/budget/budgettest"
	"github.com/consort-go/consort/converse/history/sqlite"
)

func TestLedgerPassesSuite(t *testing.T) {
	budgettest.TestLedger(t, func(t *testing.T) budgettest.Harness {
		path := filepath.Join(t.TempDir(), "talks.db")
		return budgettest.Harness{
			Shared: true,
			Open: func() (budget.Ledger, error) {
				store, err := sqlite.Open(path, nil)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() {
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				})
				return store.Ledger(), nil
			},
		}
	})
}
