// SPDX-License-Identifier: Apache-2.0

// Package temporal carries on conversations on many machines. It is the one
// doorway to Temporal's SDK, and a module of its own.
//
// Where the people are, an [Engine] appends what they say to the store and wakes
// the conversation; it is an engine.Engine like that of one process:
//
//	c, err := client.Dial(client.Options{HostPort: "temporal.example.com:7233"})
//	talks, err := temporal.NewEngine(c, store, &temporal.Options{Open: open})
//	err = talks.Send(ctx, "talk-1", canister.User{
//		Head:    canister.Head{ID: "m-1"},
//		Content: canister.Texts("What should I wear in Oslo?"),
//	})
//
// Where the work is done, on any number of machines, a [Worker] takes up what the
// server gives it:
//
//	worker, err := temporal.NewWorker(c, store, open, nil)
//	defer worker.Close()
//
// # The log is the truth
//
// The store, which all of them share, has all there is to know of a conversation.
// The server is told its identity, and nothing that was said. It leases the
// conversation to one worker, notices by missing heartbeats that the worker has
// died, and gives it to another, which carries on from the log; and it keeps the
// timer of what is waited for. A server that forgets everything loses nothing:
// each worker looks through the store when it starts, and again and again.
//
// A worker that was given up for dead and comes to itself can do no harm. Its
// lease has run out, which it notices by its own clock; and before a call is made
// an intent has to enter the log, which refuses a writer that does not know its
// end. What a worker had under way when it died is treated as the package
// comment of converse says.
//
// # One workflow
//
// The workflow of a conversation is one screen of code: an activity that carries
// the conversation on until it is done or waits, then a wait for a signal, an
// update, a deadline or the end, and again. It depends on nothing of what a turn does, so
// that models, tools and prompts change with any deploy; the histories of all
// released versions are replayed by a test.
//
// docs/temporal.md has the promises, what to set in production, and how to get a
// server for a try.
package temporal
