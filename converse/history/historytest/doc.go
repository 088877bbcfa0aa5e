// SPDX-License-Identifier: Apache-2.0

// Package historytest has the suite that every [history.Store] must pass, and
// benchmarks.
//
// Authors of a store call [TestStore] from a test. [Harness] says how the store is
// opened and which guarantees it gives:
//
//	func TestSuite(t *testing.T) {
//		historytest.TestStore(t, func(t *testing.T) historytest.Harness {
//			dir := t.TempDir()
//			open := func() (history.Store, error) { return mystore.Open(dir) }
//			return historytest.Harness{Open: open, Durable: true, Shared: true}
//		})
//	}
package historytest
