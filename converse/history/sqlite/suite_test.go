// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
)

func TestStorePassesSuite(t *testing.T) {
	conversetest.TestStore(t, func(t *testing.T) conversetest.StoreHarness {
		path := filepath.Join(t.TempDir(), "talks.db")
		return conversetest.StoreHarness{
			Open:    func() (history.Store, error) { return sqlite.Open(path, nil) },
			Durable: true,
			Shared:  true,
		}
	})
}
