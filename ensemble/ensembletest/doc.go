// SPDX-License-Identifier: Apache-2.0

// Package ensembletest helps to test what stands on package ensemble.
//
// Programs that use ensembles test with a fake [Source]: its tools are Go
// functions, and it breaks down on request. It can lose its connection, change
// its tools, fail to open, and hang, with channels in place of sleeps, so that
// tests of failures are exact and run in testing/synctest bubbles:
//
//	source := ensembletest.NewSource(ensembletest.Echo())
//	files := ensemble.New("files", source, nil)
//	...
//	source.Lose(errors.New("the server died"))
//
// Tools with something to watch are [NewTool], which counts its calls, and
// [Gate], whose calls stand still until the test lets them go.
//
// Whoever writes an [ensemble.Source] runs [TestSource] over it: the suite
// that every Source must pass. The server behind the source offers the tools
// that [ServerTools] describes; what else the suite needs is in [Harness].
package ensembletest
