// SPDX-License-Identifier: Apache-2.0

// Package postgres stores conversations in PostgreSQL. It is the store for several
// machines: programs on any of them open the same conversations, and if two append to
// one at the same time, one of them succeeds.
//
//	store, err := postgres.Open(ctx, "postgres://consort@db.example.com/talks", nil)
//	defer store.Close()
//
// When an append has returned, it would survive a power failure of the server, and its
// synchronous standbys have it too, whatever the server's setting of
// synchronous_commit. An append locks only the row of its conversation, so that
// conversations do not wait for each other. Reading locks nothing. It loads one page of
// canisters at a time, and holds no connection while the program processes them, so
// that slow readers do not block others.
//
// Canisters are in the table canisters in their JSON form, and can be inspected with
// psql. Contents of more than 1 KiB are in the table contents, each once, shared by all
// conversations that use it, until the last of them is deleted. Both have checksums,
// and a flipped bit in them is reported as a [history.CorruptError] that names the
// table and the row.
//
// A search finds words anywhere in a text, also within longer words, as in the other
// stores. With a limit it looks at the latest conversations first. Otherwise the server scans
// all texts, which takes about 2 s for each GiB. If an
// index of pg_trgm exists, it is used: docs/stores.md says how to create one, and
// its cost.
//
// A store also carries messages that are not persistent: [Store.Notify] and
// [Store.Listen] forward the parts of an answer while it is generated, and
// [Store.Watch] reports when a conversation has grown, on any machine. All loops of a
// store share one connection for this.
//
// The driver is github.com/jackc/pgx; docs/decisions/0015-postgres.md gives the
// reasons.
package postgres
