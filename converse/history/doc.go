// SPDX-License-Identifier: Apache-2.0

// Package history stores conversations. Each conversation is an append-only list of
// canisters, and that list is its complete state.
//
// A [Log] is the interface that a running conversation needs: it reads the existing
// canisters and appends new ones. Append compares the length of the list with the
// length that the writer expects: if a writer was replaced because it seemed dead, and
// then returns, only one of the two can append. Append also recognizes canisters that it
// already has by their IDs, so a writer that does not know whether its append arrived can
// repeat it.
//
// A [Store] is a Log with management functions: conversations have names and tags, and
// can be listed, searched, forked, exported and deleted. [NewMemory] keeps them in
// memory; the packages below this one keep them in files, in SQLite and in PostgreSQL.
// Authors of other stores should run the test suite of package historytest.
package history
