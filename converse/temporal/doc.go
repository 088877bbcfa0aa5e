// SPDX-License-Identifier: Apache-2.0

// Package temporal runs conversations on many machines, using Temporal. It is a
// separate module, and the only one that imports Temporal's SDK.
//
// In the processes that talk to users, an [Engine] appends messages to the store and
// wakes the conversation; it is an engine.Engine like the one for a single process:
//
//	c, err := client.Dial(client.Options{HostPort: "temporal.example.com:7233"})
//	talks, err := temporal.NewEngine(c, store, &temporal.Options{Open: open})
//	err = talks.Send(ctx, "talk-1", canister.User{
//		Head:    canister.Head{ID: "m-1"},
//		Content: canister.Texts("What should I wear in Oslo?"),
//	})
//
// On any number of other machines, a [Worker] does the work that the server assigns to
// it:
//
//	worker, err := temporal.NewWorker(c, store, open, nil)
//	defer worker.Close()
//
// # The log is the truth
//
// The store, which all of them share, has the complete state of a conversation. The
// server gets only its ID, and none of its content. It leases the conversation to
// one worker, detects by missing heartbeats that the worker has died, and assigns it to
// another, which continues from the log; and it keeps the timers of waits. If the
// server loses its data, no conversation is lost: each worker searches the store when
// it starts, and at intervals.
//
// A worker that was given up for dead and resumes can do no harm. Its lease has run
// out, which it notices by its own clock; and before each call an intent must enter the
// log, which refuses a writer that does not know its current length. The work that was
// under way when a worker died is treated as the package comment of converse says.
//
// # One workflow
//
// The workflow of a conversation is short: an activity that continues the conversation
// until it is done or waits, then a wait for a signal, an update, a deadline or the
// end, and so on. It does not depend on what happens in a turn, so that models, tools
// and prompts can change with any deployment; a test replays the histories of all
// released versions.
//
// docs/temporal.md describes the guarantees, the settings for production, and how to
// get a server to experiment with.
package temporal
