// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/pgtest"
)

func TestStorePassesSuite(t *testing.T) {
	conversetest.TestStore(t, func(t *testing.T) conversetest.StoreHarness {
		dsn := pgtest.DSN(t)
		return conversetest.StoreHarness{
			Open:    func() (history.Store, error) { return postgres.Open(t.Context(), dsn, nil) },
			Durable: true,
			Shared:  true,
		}
	})
}
