// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps conversations in one file, a SQLite database. It is the
// store for one machine: of one program, or of several that use the file at the
// same time.
//
//	store, err := sqlite.Open("talks.db", nil)
//	defer store.Close()
//
// An append has returned when it would survive the loss of power. All writing
// is done by one goroutine, which commits what arrived meanwhile in one
// transaction: the disk is waited for once, and each append has its own verdict
// all the same. Reading goes beside it and holds neither a lock nor a connection
// while the program looks at a canister; the cost of reading the end of a
// conversation does not depend on how much stands before it.
//
// Canisters stand in the table canisters in their JSON form, for everybody to
// look at with the sqlite3 command. Contents of more than 1 KiB stand in the
// table contents, each once however many conversations have it, for as long as
// there is one. Both have checksums, and a flipped bit in them is a
// [history.CorruptError] that names the table and the row. SQLite itself has
// none: damage to the index of identities can hide a conversation, which the
// PRAGMA integrity_check finds.
//
// A search finds words that stand anywhere in a text, also within longer words.
// The index for it is written a moment after the canisters, when nobody
// appends, and a search brings it up to date first, at about a millisecond for
// each KiB. It is two to four times as large as the texts. Words of one or two
// characters, and texts of more than 64 KiB, are not in it: for those, the
// conversations that may be meant are read.
//
// The driver is modernc.org/sqlite, which needs no C compiler;
// docs/decisions/0014-conversation-stores.md says why. The file must lie on a
// disk of this machine, since the locks of SQLite do not work over a network.
package sqlite
