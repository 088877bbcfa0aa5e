// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the conversations of an engine over HTTP: to programs that know
// its own API, OpenAI's Chat Completions and Responses, or AG-UI.
//
//	feed := httpapi.NewFeed(engine, store)
//	defer feed.Close()
//	http.ListenAndServe("127.0.0.1:8080", httpapi.New(feed, &httpapi.Options{Open: open}))
//
// open is the function that the engine was made with, which creates a conversation with its
// instructions. The engine runs the conversations and the store has them; clients send
// messages and answers, read, fork, cancel and delete. docs/http.md lists the requests, and [OpenAPI] describes them
// for programs.
//
// # Owners
//
// A conversation belongs to the owner that Options.Owner returns for the request that
// creates it. For every other caller it does not exist: a foreign ID is answered exactly
// as an ID that was never given out. The package does not identify callers: a handler
// around it must. Without an Owner the handler answers only requests for the loopback names
// of its machine, unless Options.Hosts lists others.
//
// # Streams
//
// The events of a conversation are the canisters of its log, the deltas of the message that
// the model is writing, and the ends of turns. The id of an event is a [Cursor], so that a client
// that was cut off continues where it was, at any process that has the same log.
package httpapi
