// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history/files"
)

func TestLedgerPassesSuite(t *testing.T) {
	conversetest.TestLedger(t, func(t *testing.T) conversetest.LedgerHarness {
		path := t.TempDir()
		return conversetest.LedgerHarness{
			Shared: true,
			Open: func() (budget.Ledger, error) {
				store, err := files.Open(path, nil)
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
