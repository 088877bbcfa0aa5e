// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/consort-go/consort/canister"
)

// ErrClosed is in the chain of errors of an engine after Close.
var ErrClosed = errors.New("engine: the engine is closed")

// ErrWaiting is in the chain of the error of Send if the conversation waits for an
// answer, so that no message can enter: answer it, or cancel the turn. Watch and
// [waits.Open] report the waits.
var ErrWaiting = errors.New("engine: the conversation waits for an answer")

// ErrBusy is in the chain of the error of [Post] if the conversation has calls under
// way, so that no message can enter, and in the error of Send if no turn can complete them.
var ErrBusy = errors.New("engine: the conversation has calls without a result")

// ErrKept is in the chain of an error of Send, Answer or Cancel if the message, answer
// or cancellation is in the log but the workers could not be notified, for example
// because a server is unreachable. It takes effect later and need not be sent again.
// Sending it again with the same ID repeats the notification.
var ErrKept = errors.New("engine: this is in the log and will take effect later")

// Engine runs conversations. All methods may be called concurrently. An engine does not
// check permissions: the program must decide which user may do what with which
// conversation.
//
// Authors of other engines should run the suite enginetest.TestEngine.
type Engine interface {
	// Send appends a message to a conversation, which is created if it does not exist,
	// and makes sure that the message is answered. It returns when the message is in
	// the log. A message whose ID is in the log already is not appended again,
	// but the conversation is checked again: this is also how to retry a turn that has
	// failed. A missing ID and time are filled in; a caller that wants to be able
	// to send again must set the ID.
	//
	// While a turn is running Send waits, for as long as ctx lasts, and messages enter
	// in the order of the calls to this engine. If the conversation waits for an
	// answer, the error is [ErrWaiting]. If its calls lack results because the turn has
	// failed for good, also when Send made it try again, the error is [ErrBusy].
	Send(ctx context.Context, conversation string, message canister.User) error
	// Answer answers a wait of the conversation, as [waits.Answer] does, with the
	// same errors, and makes sure that the conversation continues.
	Answer(ctx context.Context, conversation string, answer canister.Answer) error
	// Cancel ends the turn of a conversation, as when a user presses stop: the output
	// that the model has streamed is dropped, calls without a result are answered as
	// interrupted, and the log records the end ([Interrupt]). It returns when that is
	// in the log. If nothing was under way, Cancel does nothing and returns nil. If
	// Cancel fails, for example because ctx ends first, a turn that is not over
	// continues.
	Cancel(ctx context.Context, conversation string) error
	// Watch yields the events of a conversation, beginning with its canisters except
	// the first after ones. It continues until ctx ends, whose error is the last pair,
	// until the engine is closed, or until the caller leaves the loop. The conversation
	// need not exist yet. If it is deleted, or has less than after canisters, the last
	// pair is an error that has history.ErrNotFound in its chain. If another process
	// continues the conversation before a turn is over, an [Ended] says so
	// (Ended.Superseded), so that a caller that waits for the end of a turn does not
	// wait indefinitely.
	Watch(ctx context.Context, conversation string, after int) iter.Seq2[Event, error]
	// Close starts nothing new and lets running turns continue until ctx ends. It then
	// suspends the remaining turns, so that the next process resumes them. When Close
	// returns nil, nothing that the engine has started is left. It does not close the
	// store. It may be called twice.
	Close(ctx context.Context) error
}
