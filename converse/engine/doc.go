// SPDX-License-Identifier: Apache-2.0

// Package engine decides who carries on the conversations of a log, and when.
//
// A conversation is its log (package history): from the canisters alone follows
// what comes next. An [Engine] is what a front end talks to. It appends what
// people say and decide to the log first and then sees to it that somebody works:
//
//	engine, err := engine.NewLocal(store, open, nil)
//	if err != nil {
//		return err
//	}
//	defer engine.Close(ctx)
//	err = engine.Send(ctx, "talk-1", canister.User{
//		Head:    canister.Head{ID: "m-1"},
//		Content: canister.Texts("What should I wear in Oslo?"),
//	})
//	for event, err := range engine.Watch(ctx, "talk-1", 0) {
//		...
//	}
//
// [Local] is the engine of one process: a goroutine for each turn. Package
// converse/temporal has one for many machines. Both do nothing but what follows
// from the log, so that a conversation can go from one to the other, and a
// process that dies takes nothing with it.
//
// # The log comes first
//
// What has returned without an error is in the log, and happens even if the
// process dies at once: [Local] takes up what was left unfinished when it
// starts. Who does not know whether a Send or an Answer arrived does it again
// with the same identity, which does nothing the second time.
//
// # A message for a conversation at work
//
// A message may not stand between an invocation and its result. So Send waits
// for its turn: messages enter in the order in which they came, each when the
// turn before it is over, and Send returns when its message is in the log. A
// message whose Send ended with an error is not there, unless the log itself
// could not tell; nothing is kept anywhere else. A conversation that waits for an answer could wait
// for days, and says so with [ErrWaiting]: answer it, or cancel the turn, first.
//
// # What can be watched
//
// Watch yields two sorts of events. [Added] is durable: each canister of the
// log, with its place. [Delta] is lossy: what the model has said so far of a
// message that is not complete, the progress of tools. An attempt that failed
// and is made again says the same once more; its deltas have a greater Attempt,
// and a client drops what it showed of an earlier one. When an [Added] comes,
// all deltas before it are superseded. [Ended] says that a turn is done, waits,
// or has failed.
package engine
