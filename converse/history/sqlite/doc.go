// SPDX-License-Identifier: Apache-2.0

// Package sqlite stores conversations in one file, a SQLite database. It is the store
// for a single machine, for one program or several that use the file at the same time.
//
//	store, err := sqlite.Open("talks.db", nil)
//	defer store.Close()
//
// When an append has returned, it would survive a power failure. One goroutine does all
// writing and commits the pending appends in one transaction: it waits for the disk
// once, but each append gets its own result. Reading runs concurrently with it and
// holds neither a lock nor a connection while the program processes a canister; the
// cost of reading the end of a conversation does not depend on its length.
//
// Canisters are in the table canisters in their JSON form, and can be inspected with
// the sqlite3 command. Contents of more than 1 KiB are in the table contents, each
// once, shared by all conversations that use it, until the last of them is deleted.
// Both have checksums, and a flipped bit in them is reported as a
// [history.CorruptError] that names the table and the row. SQLite itself has no
// checksums: damage to the index of IDs can hide a conversation; PRAGMA
// integrity_check finds it.
//
// A search finds words anywhere in a text, also within longer words. The index for it
// is updated shortly after an append, when no appends are running, and each search
// updates it first, at about a millisecond for each KiB. It is two to four times as
// large as the texts. Words of one or two characters, and texts of more than 64 KiB,
// are not in the index: for those, a search reads the conversations that may match.
//
// The driver is modernc.org/sqlite, which needs no C compiler;
// docs/decisions/0014-conversation-stores.md gives the reasons. The file must be on a
// local disk, because the locks of SQLite do not work over a network.
package sqlite
