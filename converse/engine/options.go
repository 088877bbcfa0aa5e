// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// The defaults of [Options].
const (
	defaultWork    = 64
	defaultRetries = 5
	defaultBackoff = time.Second
)

// maxBackoff bounds the pause between two attempts.
const maxBackoff = time.Minute

// Options configure a [Local] engine. Nil, and the zero value of each field, mean the
// default that the field documents.
type Options struct {
	// Work is the maximum number of concurrent turns; default 64. Other turns wait in
	// order of arrival.
	Work int
	// Retries is how often a failed turn is retried; default 5, negative means never.
	// After that the conversation stays as it is until the next Send or the next start
	// of an engine. Failures that would recur, for example a request that the model's
	// server refuses, or a panic, are not retried. If the log did not accept the result of
	// a call, the conversation stays open between these attempts, so that the result is
	// not lost. The search for unfinished work tries as often to read a conversation that
	// the store could not read.
	Retries int
	// Backoff is the pause before a retry. It doubles each time up to a minute; default
	// 1 s.
	Backoff time.Duration
	// Others is for several processes that share one store. A conversation that may be
	// in use by another process, because it has running calls that this process has not
	// begun, is taken over when it has not changed for this long. It should be longer
	// than a call takes, plus the difference of the clocks: calls have the time of their
	// process, and changes the time of the store. The store is searched at the
	// same interval for work that other processes have left. When the engine starts, it also
	// takes up each conversation that only waits, or whose last canister is an answer. The
	// default 0 means that there is no other process: unfinished work is resumed as soon as the
	// engine starts. Calls that must not be
	// repeated are not repeated, whatever the value; but if a call is taken over from a
	// process that is still alive, the model is told that the outcome is unknown.
	Others time.Duration
	// Values returns the trusted values of a conversation, for open and for its tools.
	// A turn may run in a process that has no caller, so the values can only be based
	// on the metadata in the store, at most [history.Info.Owner], which identifies the
	// user and can be empty. Look up credentials here; they are never stored. An error fails
	// the turn; its text goes to the Logger only.
	// Nil means no values. It is called concurrently.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Owner returns the owner of a conversation that begins with a Send, given the
	// context of that Send. It becomes [history.Info.Owner] before any work starts, unless
	// the process dies or the store fails at that moment: then Info.Owner is empty until the
	// same message is sent again. Messages that did not begin the conversation change nothing. If
	// Owner is nil or returns an empty string, Info.Owner is left as it is.
	Owner func(ctx context.Context) (string, error)
	// Stream carries the deltas; the default is a [NewStream], which works within this
	// process.
	Stream Stream
	// Poll is how often a Watch reads the log when the stream is silent; default 1 s.
	Poll time.Duration
	// Logger receives problems; nil discards them.
	Logger *zap.Logger
}

// withDefaults returns the options with defaults filled in.
func (o *Options) withDefaults() (Options, error) {
	var all Options
	if o != nil {
		all = *o
	}
	if all.Work < 0 || all.Backoff < 0 || all.Others < 0 || all.Poll < 0 {
		return all, errors.New("engine: NewLocal was given a negative number: only Retries may be negative")
	}
	all.Work = cmp.Or(all.Work, defaultWork)
	all.Retries = max(cmp.Or(all.Retries, defaultRetries), 0)
	all.Backoff = cmp.Or(all.Backoff, defaultBackoff)
	all.Poll = cmp.Or(all.Poll, defaultPoll)
	if all.Stream == nil {
		all.Stream = NewStream()
	}
	all.Logger = logevent.Logger(all.Logger)
	return all, nil
}

// pause returns the pause before retry n, counted from 0.
func (o *Options) pause(n int) time.Duration {
	pause := o.Backoff
	for ; n > 0 && pause < maxBackoff; n-- {
		pause *= 2
	}
	return min(pause, max(maxBackoff, o.Backoff))
}
