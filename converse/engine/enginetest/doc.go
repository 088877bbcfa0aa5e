// SPDX-License-Identifier: Apache-2.0

// Package enginetest has the suite that every [engine.Engine] must pass.
//
// Authors of an engine call [TestEngine] from a test. [Harness] says how an engine is
// started over a store, and how its process is killed; [Mortal] is a store that a
// killed process can no longer write to:
//
//	func TestSuite(t *testing.T) {
//		enginetest.TestEngine(t, func(t *testing.T) enginetest.Harness {
//			store := history.NewMemory()
//			return enginetest.Harness{Store: store, Start: func(open func(history.Log) converse.OpenFunc) (enginetest.Process, error) {
//				mortal := enginetest.NewMortal(store)
//				e := myengine.New(mortal, open(mortal))
//				return enginetest.Process{Engine: e, Kill: mortal.Kill}, nil
//			}}
//		})
//	}
package enginetest
