// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// The defaults of [Options].
const (
	defaultWork    = 64
	defaultRetries = 5
	defaultBackoff = time.Second
)

// maxBackoff is the longest pause between two attempts.
const maxBackoff = time.Minute

// Options are the choices of a [Local] engine. Nil, and the zero value of each
// field, mean the default that the field names.
type Options struct {
	// Work is how many turns are at work at the same time; default 64. Others
	// wait for one of them to end, in the order in which they came.
	Work int
	// Retries is how often a turn that failed is tried again; default 5, negative
	// never. Then the conversation is left as it is until the next Send or the
	// next start of an engine. What would fail the same way again, such as a
	// request that the model's server refuses, or a panic, is not tried again.
	Retries int
	// Backoff is the pause before a turn is tried again. It doubles each time up
	// to a minute; default 1 s.
	Backoff time.Duration
	// Others is for several processes that work on one store: a conversation at
	// which another one may be at work, since it has calls under way that this
	// one has not begun, is taken up when it has not changed for so long. Let it
	// be longer than a call takes. The store is looked through as often for what
	// others have left. The default 0 says that no other process is there: what
	// is unfinished is taken up at once, when the engine starts. No choice lets
	// an effect happen twice that must not; but of a call that is taken away from
	// a process that lives, the model hears that nobody knows what came of it.
	Others time.Duration
	// Values are the trusted values of a conversation, for the function that
	// opens it and for its tools. A turn may be carried on by a process that
	// nobody has called, so that they come from what the store knows of the
	// conversation, which is never more than [history.Info.Owner]: who it works
	// for. Credentials are looked up here and never kept. An error is that of the
	// turn. Nil gives none. It is called concurrently.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Owner tells from the context of a Send for whom a conversation is that
	// begins with it, and becomes its [history.Info.Owner] before any work. Nil,
	// and an empty answer, leave that as it is.
	Owner func(ctx context.Context) (string, error)
	// Stream carries the deltas; default one of this process, [NewStream].
	Stream Stream
	// Poll is how often a Watch looks at the log when the stream says nothing;
	// default 1 s.
	Poll time.Duration
	// Logger takes what goes wrong; nil is silent.
	Logger *zap.Logger
}

// withDefaults returns the options with every default in place.
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
	all.Logger = event.Logger(all.Logger)
	return all, nil
}

// pause is how long is waited before attempt number n, from 0.
func (o *Options) pause(n int) time.Duration {
	pause := o.Backoff
	for ; n > 0 && pause < maxBackoff; n-- {
		pause *= 2
	}
	return min(pause, max(maxBackoff, o.Backoff))
}
