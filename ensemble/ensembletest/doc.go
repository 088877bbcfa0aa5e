// SPDX-License-Identifier: Apache-2.0

// Package ensembletest helps to test code that uses package ensemble.
//
// Programs that use ensembles can test with a fake [Source]: its tools are Go
// functions, and it fails on request. It can lose its connection, change its tools,
// fail to open, and hang. It uses channels instead of sleeps, so that tests of failures
// are exact and run in testing/synctest bubbles:
//
//	source := ensembletest.NewSource(ensembletest.Echo())
//	files := ensemble.New("files", source, nil)
//	...
//	source.Lose(errors.New("the server died"))
//
// [NewTool] makes tools that count their calls. The calls of a [Gate] block until the
// test releases them.
//
// To test an [ensemble.Source], run [TestSource]: the suite that every Source must
// pass. The server of the source offers the tools that [ServerTools] describes;
// [Harness] describes everything else that the suite needs.
package ensembletest
