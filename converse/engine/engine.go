// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/consort-go/consort/canister"
)

// ErrClosed is in the chain of the errors of an engine after Close.
var ErrClosed = errors.New("engine: the engine is closed")

// ErrWaiting is in the chain of the error of Send about a conversation that
// waits for an answer, so that no message can enter: answer it, or cancel the
// turn. What is waited for, Watch tells, and [converse.Waiting].
var ErrWaiting = errors.New("engine: the conversation waits for an answer")

// ErrBusy is in the chain of the error of [Post] about a conversation that has
// calls under way, so that no message can enter.
var ErrBusy = errors.New("engine: the conversation has calls that lack a result")

// ErrKept is in the chain of an error of Send, Answer or Cancel that comes when
// what was said is in the log: it holds, and will be carried on, but those who do
// that could not be told just now, such as a server that is away. It need not be
// said again. Who does so, with the same identity, has them told again.
var ErrKept = errors.New("engine: this is in the log, and will be carried on later")

// Engine carries on conversations. All methods may be called concurrently. Who
// may do what with which conversation is for the program to know: an engine
// does not ask.
//
// Who writes one of their own runs the suite enginetest.TestEngine over it.
type Engine interface {
	// Send puts a message into a conversation, which begins with it if there is
	// none, and sees to it that it is answered. It returns when the message is in
	// the log. A message that is there already, by its identity, is not said
	// twice, but the conversation is looked at again: that is also how a turn
	// that has failed is tried once more. An identity and a time that are missing
	// are filled in; who wants to send again has to give one.
	//
	// While the conversation is at work Send waits, for as long as ctx lasts, and
	// messages enter in the order in which they were sent to this engine. If it
	// waits for an answer, the error is [ErrWaiting].
	Send(ctx context.Context, conversation string, message canister.User) error
	// Answer answers what a conversation waits for, as [converse.Answer] does,
	// with the same errors, and sees to it that it goes on.
	Answer(ctx context.Context, conversation string, answer canister.Answer) error
	// Cancel ends the turn of a conversation, as a person wants it who presses
	// stop: what the model had streamed is dropped, calls without a result are
	// answered as interrupted, and the log says so ([Interrupt]). It returns when
	// that is in the log. There is no error if nothing was under way. After an
	// error, as when ctx ends first, a turn that is not over goes on.
	Cancel(ctx context.Context, conversation string) error
	// Watch yields what happens in a conversation, beginning with the canisters
	// behind the first after ones. It goes on until ctx ends, whose error is the
	// last pair, or the engine is closed; leaving the loop ends it. A
	// conversation that does not exist yet may be watched. When a conversation is
	// deleted, or has less than after canisters, the last pair is an error that has
	// history.ErrNotFound in its chain. If another process goes on with the
	// conversation before a turn is over, an [Ended] says so (Ended.Superseded). So a
	// caller that waits for the end of a turn does not wait for ever.
	Watch(ctx context.Context, conversation string, after int) iter.Seq2[Event, error]
	// Close begins nothing new and lets the turns that are under way go on until
	// ctx ends. Those that have not ended then are put down, so that the next
	// process carries them on. When Close returns nil, nothing that the engine
	// has started is left. It does not close the store. It may be called twice.
	Close(ctx context.Context) error
}
