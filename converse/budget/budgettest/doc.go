// SPDX-License-Identifier: Apache-2.0

// Package budgettest has the suite that every [budget.Ledger] must pass.
//
// Authors of a ledger call [TestLedger] from a test. [Harness] says how the ledger is
// opened, and whether several processes may use it at once:
//
//	func TestSuite(t *testing.T) {
//		budgettest.TestLedger(t, func(t *testing.T) budgettest.Harness {
//			path := filepath.Join(t.TempDir(), "ledger")
//			return budgettest.Harness{Open: func() (budget.Ledger, error) { return myledger.Open(path) }, Shared: true}
//		})
//	}
package budgettest
