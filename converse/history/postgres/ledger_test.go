// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/budget/budgettest"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

func TestLedgerPassesSuite(t *testing.T) {
	t.Parallel()
	budgettest.TestLedger(t, func(t *testing.T) budgettest.Harness {
		dsn := pgtest.DSN(t)
		return budgettest.Harness{
			Shared: true,
			Open: func() (budget.Ledger, error) {
				store, err := postgres.Open(t.Context(), dsn, nil)
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
