// SPDX-License-Identifier: Apache-2.0

// Package engine decides which conversations of a log to run, and when.
//
// The log (package history) is the complete state of a conversation: the canisters
// alone determine the next step. Front ends talk to an [Engine]. It appends messages
// and decisions to the log first and then makes sure that the conversation is
// continued:
//
//	local, err := engine.NewLocal(store, open, nil)
//	if err != nil {
//		return err
//	}
//	defer local.Close(ctx)
//	err = local.Send(ctx, "talk-1", canister.User{
//		Head:    canister.Head{ID: "m-1"},
//		Content: canister.Texts("What should I wear in Oslo?"),
//	})
//	for event, err := range local.Watch(ctx, "talk-1", 0) {
//		...
//	}
//
// [Local] is the engine for one process, with a goroutine for each turn. Package
// converse/temporal has an engine for many machines. Both derive everything they do
// from the log, so that a conversation can move from one to the other, and nothing is
// lost if a process dies.
//
// # The log comes first
//
// When a method has returned without an error, its message or answer is in the log and
// takes effect even if the process dies at once: [Local] resumes unfinished work when
// it starts. A caller that does not know whether a Send or an Answer arrived can repeat
// it with the same ID; the second call does nothing.
//
// # A message during a turn
//
// A message may not stand between an invocation and its result. So Send waits until the
// current turn is over. Messages enter in order of arrival, each after the turn before
// it is over, and Send returns when its message is in the log. If Send returns an
// error, the message is not in the log, unless the log itself could not tell; the
// message is not kept anywhere else. A conversation that waits for an answer could wait
// for days, so Send returns [ErrWaiting] instead: first answer it, or cancel the turn.
//
// # What can be watched
//
// Watch yields durable and lossy events. [Added] is durable: it carries each canister
// of the log, with its position. [Delta] is lossy: it carries the output of the model for
// a message that is not complete, and the progress of tools. When an attempt fails and
// is repeated, the same output comes again; its deltas have a greater Attempt, and
// clients discard the output of earlier attempts. An [Added] supersedes all deltas
// before it. [Ended] says that a turn is done, waits, or has failed.
package engine
