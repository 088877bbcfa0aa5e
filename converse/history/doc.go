// SPDX-License-Identifier: Apache-2.0

// Package history keeps conversations: each is an append-only list of
// canisters, and that list is all there is to know of it.
//
// A [Log] is what a conversation needs while it runs: it reads what there is
// and appends what happens. Append compares the length of the list with what
// the writer believes that it is, so that of two writers, of which one may have
// been given up for dead, only one goes on; and it knows canisters that it has
// already by their identities, so that a writer that does not know whether its
// append arrived simply does it again.
//
// A [Store] is a Log that people look after: conversations have names and tags,
// are listed, searched, forked, exported and deleted. [NewMemory] keeps them in
// memory; the packages below this one keep them in files, in SQLite and in
// PostgreSQL. The author of another store runs the suite of
// package historytest over it.
package history
