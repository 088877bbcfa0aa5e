// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
)

func TestMemoryPassesSuite(t *testing.T) {
	conversetest.TestLedger(t, func(t *testing.T) conversetest.LedgerHarness {
		memory := budget.NewMemory()
		return conversetest.LedgerHarness{Open: func() (budget.Ledger, error) { return memory, nil }}
	})
}
