// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

func TestStorePassesSuite(t *testing.T) {
	t.Parallel()
	historytest.TestStore(t, func(t *testing.T) historytest.Harness {
		dsn := pgtest.DSN(t)
		return historytest.Harness{
			Open:    func() (history.Store, error) { return postgres.Open(t.Context(), dsn, nil) },
			Durable: true,
			Shared:  true,
		}
	})
}
