// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/budget/budgettest"
)

func TestMemoryPassesSuite(t *testing.T) {
	budgettest.TestLedger(t, func(t *testing.T) budgettest.Harness {
		memory := budget.NewMemory()
		return budgettest.Harness{Open: func() (budget.Ledger, error) { return memory, nil }}
	})
}
