// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps conversations in PostgreSQL. It is the store for
// several machines: programs on any of them open the same conversations, and of
// two that append to one at the same time, one goes on.
//
//	store, err := postgres.Open(ctx, "postgres://consort@db.example.com/talks", nil)
//	defer store.Close()
//
// An append has returned when the server would have it after the loss of power,
// and its synchronous standbys as well, whatever the server's setting of
// synchronous_commit is. An append locks the row of its conversation alone, so
// that conversations do not wait for each other. Reading locks nothing. It takes
// a page of canisters at a time, and holds no connection while the program looks
// at them: a slow reader is in nobody's way.
//
// Canisters stand in the table canisters in their JSON form, for everybody to
// look at with psql. Contents of more than 1 KiB stand in the table contents,
// each once however many conversations have it, for as long as there is one.
// Both have checksums, and a flipped bit in them is a [history.CorruptError]
// that names the table and the row.
//
// A search finds words that stand anywhere in a text, also within longer words,
// as in the other stores. The server looks through all texts for it, about 2 s
// for each GiB. An index of pg_trgm, if somebody makes one, is used:
// docs/durability.md says how, and what it costs.
//
// Beside the conversations, a store carries what does not last: [Store.Notify]
// and [Store.Listen] pass on the parts of an answer while it is made, and
// [Store.Watch] tells when a conversation grew, wherever that was done. All
// loops of a store share one connection for it.
//
// The driver is github.com/jackc/pgx; docs/decisions/0015-postgres.md says why.
package postgres
