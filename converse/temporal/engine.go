// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/claim"
	"github.com/consort-go/consort/converse/internal/opening"
	"github.com/consort-go/consort/converse/internal/programerror"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/contain"
	"go.temporal.io/sdk/client"
)

// Options configure an [Engine]. Nil, and the zero value of each field, mean the
// default that the field documents.
type Options struct {
	// Queue is the task queue of the workers; default "consort".
	Queue string
	// Prefix begins the IDs of the workflows, for namespaces that are shared with other
	// programs; default "consort/". It must be the same in the workers.
	Prefix string
	// Open creates the conversation for a first message, so that its instructions come
	// before the message. If it is nil, conversations begin without instructions.
	Open converse.OpenFunc
	// Owner returns the owner of a conversation that begins with a Send, given the
	// context of that Send. It becomes [history.Info.Owner] before any work starts, unless
	// the process dies or the store fails at that moment: then Info.Owner is empty until the
	// same message is sent again, and the search of a worker can start the work before that.
	// If Owner is nil or returns an empty string, Info.Owner is left as it is.
	Owner func(ctx context.Context) (string, error)
	// Stream receives deltas from the workers, which must use the same stream. If it is
	// nil, Watch yields only what is in the log.
	Stream engine.Stream
	// Poll is how often Watch reads the log when the stream is silent, and how often a
	// waiting Send checks whether the turn is over; default 1 s with a Stream and 200
	// ms without.
	Poll time.Duration
	// Noted is how long Send and Answer wait for a worker to acknowledge the change of
	// the log. If none does, they return [engine.ErrKept], and the first worker that
	// becomes available continues the conversation. The default 0 does not wait for a
	// worker: it is enough that the server accepted the signal.
	Noted time.Duration
	// Now returns the time for messages and answers; default time.Now.
	Now func() time.Time
}

// defaultPrefix is the default of Options.Prefix.
const defaultPrefix = "consort/"

// Engine is the [engine.Engine] for many machines, used in front ends: it appends
// messages to the store, and a Temporal server makes a [Worker] continue from there. It
// does no work itself, and any number of processes may have one. Its methods may be
// called concurrently.
type Engine struct {
	starter
	store history.Store
	opts  Options

	ctx     context.Context // ends with the engine
	end     context.CancelFunc
	mu      sync.Mutex
	readers sync.WaitGroup // of streams
	lines   lines          // of callers of Send
}

var _ engine.Engine = (*Engine)(nil)

// NewEngine returns an engine for the conversations of store and the server that c is
// connected to. The caller still owns both and must close them after the engine. Opts
// may be nil.
func NewEngine(c client.Client, store history.Store, opts *Options) (*Engine, error) {
	if c == nil || store == nil {
		return nil, errors.New("temporal: an engine needs a client and a store")
	}
	e := &Engine{store: store}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Poll < 0 || e.opts.Noted < 0 {
		return nil, fmt.Errorf("temporal: an engine does not accept a negative Poll (%v) or Noted (%v)", e.opts.Poll, e.opts.Noted)
	}
	if e.opts.Poll == 0 {
		e.opts.Poll = time.Second
		if e.opts.Stream == nil {
			e.opts.Poll = 200 * time.Millisecond
		}
	}
	if e.opts.Now == nil {
		e.opts.Now = time.Now
	}
	e.starter = starter{client: c, queue: cmp.Or(e.opts.Queue, DefaultQueue), prefix: cmp.Or(e.opts.Prefix, defaultPrefix)}
	e.ctx, e.end = context.WithCancel(context.Background())
	return e, nil
}

// enter begins a call and returns a context that also ends with the engine. The caller
// must call the returned function at the end.
func (e *Engine) enter(ctx context.Context) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, nil, engine.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(e.ctx, func() { cancel(engine.ErrClosed) })
	return ctx, func() { unhook(); cancel(nil) }, nil
}

// Send implements [engine.Engine].
func (e *Engine) Send(ctx context.Context, conversation string, message canister.User) error {
	next, err := e.lines.queue(ctx, e.ctx, conversation)
	if err != nil {
		return err
	}
	defer next()
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if message.ID == "" {
		message.ID = rand.Text()
		if message.Time.IsZero() { // nothing earlier can be this message
			message.Time = e.opts.Now()
		}
	}
	owner := ""
	if e.opts.Owner != nil {
		err := contained(func() (err error) { owner, err = e.opts.Owner(ctx); return err })
		if err != nil {
			return fmt.Errorf("temporal: the owner of %s: %w", conversation, err)
		}
	}
	err = contained(func() error { return e.post(ctx, conversation, message) })
	claimed := claim.Set(ctx, e.store, conversation, message.ID, owner) // also if an error came after the message
	if err := cmp.Or(err, claimed); err != nil {
		return err
	}
	return kept(e.wake(ctx, conversation))
}

// wakeTimeout bounds the notification of a workflow for a caller that has left, and the search for a message whose
// append has failed.
const wakeTimeout = 5 * time.Second

// wake notifies the workflow of a conversation that the log has grown, also after the end of
// ctx: no other caller would.
func (e *Engine) wake(ctx context.Context, conversation string) error {
	if e.opts.Noted > 0 && ctx.Err() == nil {
		if err := e.look(ctx, conversation, e.opts.Noted); err == nil || ctx.Err() == nil {
			return err
		}
	}
	return e.notify(ctx, conversation)
}

// notify is like wake, and does not wait for a worker.
func (e *Engine) notify(ctx context.Context, conversation string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTimeout)
	defer cancel()
	return e.signal(ctx, conversation, wakeSignal)
}

// kept wraps an error that occurred after the change was in the log.
func kept(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", engine.ErrKept, err)
}

// Answer implements [engine.Engine].
func (e *Engine) Answer(ctx context.Context, conversation string, answer canister.Answer) error {
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = waits.Answer(ctx, e.store, conversation, answer, e.opts.Now())
	if errors.Is(err, waits.ErrNotOpen) {
		return err
	}
	if err != nil { // an append that returned an error can have taken effect
		_ = e.notify(ctx, conversation)
		return err
	}
	return kept(e.wake(ctx, conversation))
}

// Cancel implements [engine.Engine]. It notifies the workers. If the error is nil,
// nothing is under way, or the server informs the worker with its next heartbeat,
// within a fifth of WorkerOptions.Heartbeat; work done until then does not enter the
// log. If the error is [engine.ErrKept], the log says that the turn is over, but no
// worker has acknowledged it within 5 seconds.
func (e *Engine) Cancel(ctx context.Context, conversation string) error {
	ctx, leave, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := engine.Interrupt(ctx, e.store, conversation, e.opts.Now()); err != nil {
		return err
	}
	return kept(e.stop(ctx, conversation, stopping))
}

// Watch implements [engine.Engine]. It ends with the error of a panic of Options.Open.
func (e *Engine) Watch(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		ctx, leave, err := e.enter(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer leave()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		watcher := engine.Watcher{Log: e.store, Stream: news{Engine: e}, Poll: e.opts.Poll, Next: e.next(cancel)}
		watcher.Watch(ctx, conversation, after)(yield)
	}
}

// next returns a function that returns the next step of a conversation given its
// limits, or nil if conversations cannot be opened. After a panic it calls end:
// there is no log for it, and a worker reports other errors.
func (e *Engine) next(end context.CancelCauseFunc) func(context.Context, string) (converse.Command, error) {
	if e.opts.Open == nil {
		return nil
	}
	return func(ctx context.Context, conversation string) (command converse.Command, err error) {
		err = contained(func() error {
			talk, err := opening.Open(ctx, e.opts.Open, conversation)
			if err != nil {
				return err
			}
			err = errors.Join(talk.Load(ctx), talk.Close(context.WithoutCancel(ctx)))
			command = talk.Next()
			return err
		})
		if _, panicked := errors.AsType[*contain.Panic](err); panicked {
			end(err)
		}
		return command, err
	}
}

// contained calls f, and returns a panic of a function of the program as an error.
func contained(f func() error) (err error) {
	if panicked := contain.Call("a function of the program", func() { err = f() }); panicked != nil {
		return &programerror.Error{What: "temporal: a function of the program panicked", Cause: panicked}
	}
	return contain.Error(err)
}

// Close implements [engine.Engine]. Waiting calls, including Watch, end with
// [engine.ErrClosed]. Turns belong to the workers and continue.
func (e *Engine) Close(context.Context) error {
	e.mu.Lock()
	e.end()
	e.mu.Unlock()
	e.readers.Wait()
	return nil
}
