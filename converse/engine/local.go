// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/claim"
	"github.com/consort-go/consort/converse/internal/elsewhere"
	"github.com/consort-go/consort/converse/waits"
)

// errCancelled is the cancellation cause when a user has cancelled a turn.
var errCancelled = errors.New("engine: the turn was cancelled")

// Local is the [Engine] of one process. Use [NewLocal] to create one; the methods of
// its zero value panic. An idle conversation costs no memory. One that waits or is to
// be retried costs its ID and a time.
type Local struct {
	store     history.Store
	open      converse.OpenFunc
	opts      Options
	scheduler *scheduler
	checks    *checkQueue
	watch     Watcher

	failures failures
	begun    elsewhere.Begun // the calls that this process has begun, and whose results may not be in the log

	lifetime context.Context // ends with Close
	stop     context.CancelFunc
	ended    sync.WaitGroup // the goroutines other than the turns
	attempts atomic.Int64   // the latest
}

var _ Engine = (*Local)(nil)

// NewLocal starts an engine for the conversations of a store. It searches the store for
// unfinished work and resumes it. A fork in the middle of a turn that has no canister of its
// own is resumed only by Send, for instance of its last message; if the engine ends before the
// fork has one, it is resumed by the next Send. The engine calls open to create the
// conversation for each turn and closes it after the turn: its Options must have the store,
// or a wrapper of it, as Log, and its ID as ID. The trusted values of Options.Values are in
// the context that open gets, and in the context of the turn. A tool call that an
// earlier process may have made is treated as the conversation's Options.AskDoubt says.
//
// The caller still owns the store and must close it after the engine. Opts may be nil.
func NewLocal(store history.Store, open converse.OpenFunc, opts *Options) (*Local, error) {
	if store == nil || open == nil {
		return nil, errors.New("engine: NewLocal needs a store and a function that opens conversations")
	}
	all, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Local{store: store, open: open, opts: all, checks: newCheckQueue()}
	l.scheduler = newScheduler(all.Work, l.turn)
	l.watch = Watcher{Log: store, Stream: all.Stream, Poll: all.Poll, Next: l.next, Failed: l.failures.last}
	l.lifetime, l.stop = context.WithCancel(context.Background())
	l.ended.Go(func() { l.checks.run(l.lifetime, l.scheduler.scheduleAgain) })
	l.ended.Go(l.search)
	return l, nil
}

// Send implements [Engine].
func (l *Local) Send(ctx context.Context, conversation string, message canister.User) error {
	t, err := l.scheduler.acquire(ctx, conversation)
	if err != nil {
		return l.sendError(conversation, err)
	}
	if message.ID == "" { // no earlier message can be this one
		message.ID, message.Time = rand.Text(), cmp.Or(message.Time, time.Now())
	}
	for n := 0; ; n++ {
		err := l.post(ctx, conversation, message)
		if !errors.Is(err, ErrBusy) {
			if err == nil {
				l.failures.forget(conversation) // a new watch does not report the old failure
			}
			l.scheduler.release(t, err == nil)
			return err
		}
		// No turn is running here, and calls are open nevertheless: they are made now,
		// unless another process makes them, or at the retry of the turn that has failed.
		ended, failed := l.failures.last(conversation, 0)
		switch {
		case n == 0:
			t.tries, failed = tries{}, false
		case failed && ended.Again.IsZero():
			l.scheduler.release(t, false)
			return fmt.Errorf("%w, because the turn has failed (%s); nothing was sent", err, cmp.Or(ended.Error, string(ended.Reason)))
		default:
			if waited := wait(ctx, l.lifetime, min(l.opts.pause(n-1), time.Second)); waited != nil {
				l.scheduler.release(t, false)
				return fmt.Errorf("%w (%w)", waited, err)
			}
		}
		if err := l.scheduler.runThenAcquire(ctx, t, !failed); err != nil {
			return l.sendError(conversation, err)
		}
	}
}

// sendError returns the error of a message that could not be sent.
func (l *Local) sendError(conversation string, err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("engine: the conversation %q is busy, and nothing was sent: %w", conversation, err)
}

// post calls Post and sets the owner. It turns a panic into an error, as in a turn,
// because the conversation is held.
func (l *Local) post(ctx context.Context, conversation string, message canister.User) (err error) {
	defer l.recoverPanic(conversation, &err)
	owner := ""
	if l.opts.Owner != nil {
		if owner, err = l.opts.Owner(ctx); err != nil {
			return fmt.Errorf("engine: the owner of %q: %w", conversation, err)
		}
	}
	err = Post(ctx, l.store, l.open, conversation, message, time.Now())
	if err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrWaiting) && l.isThere(ctx, conversation, message) {
		err = nil
	}
	claimed := claim.Set(ctx, l.store, conversation, message.ID, owner) // also if an error came after the message
	return cmp.Or(err, claimed)
}

// thereTimeout bounds how long a Send whose context has ended, or whose append has failed, looks for its message.
const thereTimeout = 5 * time.Second

// isThere reports whether a message is in the log although its append returned an error: the context
// ended, or the connection of the store, before the outcome was known. Nothing else would answer it.
func (l *Local) isThere(ctx context.Context, conversation string, message canister.User) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), thereTimeout)
	defer cancel()
	_, canisters, err := LastTurn(ctx, l.store, conversation, message.Time.Add(-Skew))
	there, wrong := hasMessage(canisters, message)
	return err == nil && wrong == nil && there
}

// Answer implements [Engine]. It does not wait for a running turn, which finds the
// answer in the log.
func (l *Local) Answer(ctx context.Context, conversation string, answer canister.Answer) error {
	if l.lifetime.Err() != nil {
		return ErrClosed
	}
	err := waits.Answer(ctx, l.store, conversation, answer, time.Now())
	if !errors.Is(err, waits.ErrNotOpen) { // an append that returned an error can have taken effect
		l.scheduler.scheduleAgain(conversation, tries{})
	}
	return err
}

// Cancel implements [Engine].
func (l *Local) Cancel(ctx context.Context, conversation string) error {
	t, err := l.scheduler.preempt(ctx, conversation, errCancelled)
	if err != nil {
		return err
	}
	defer l.scheduler.release(t, false)
	err = Interrupt(ctx, l.store, conversation, time.Now())
	if err == nil {
		l.checks.forget(conversation)
		l.failures.forget(conversation)
		l.begun.Forget(conversation) // all calls have results
		l.grown(ctx, conversation)
	}
	return err
}

// Active reports whether the engine works on a conversation, or will do so without another
// call: at a retry, or when a wait ends. It knows nothing of the work of other processes.
func (l *Local) Active(conversation string) bool {
	if _, failed := l.Failed(conversation, 0); failed {
		return false // the turn that has failed may not have ended yet
	}
	return l.scheduler.busy(conversation) || l.checks.has(conversation)
}

// grown notifies watchers that the log has grown.
func (l *Local) grown(ctx context.Context, conversation string) {
	if info, err := l.store.Info(ctx, conversation); err == nil {
		_ = l.opts.Stream.Publish(ctx, conversation, Delta{Position: info.Length}) // watchers then find out from the log
	}
}

// Failed returns the failure after which this process has given up the last turn of a conversation, or the end of a
// turn that a budget has ended, without an Error. It is not ok if there was neither, if a retry will come, or after a
// restart, which continues the turn. Length is the length of the log, or 0 if the caller does not know it: if the log has grown since,
// another process continues the turn.
func (l *Local) Failed(conversation string, length int) (failure Ended, ok bool) {
	failure, ok = l.failures.last(conversation, length)
	return failure, ok && failure.Again.IsZero()
}

// Watch implements [Engine].
func (l *Local) Watch(ctx context.Context, conversation string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if l.lifetime.Err() != nil {
			yield(nil, ErrClosed)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(l.lifetime, func() { cancel(ErrClosed) })()
		for event, err := range l.watch.Watch(ctx, conversation, after) {
			if !yield(event, err) {
				return
			}
		}
	}
}

// next returns the next step of a conversation that is not in use here.
func (l *Local) next(ctx context.Context, conversation string) (command converse.Command, err error) {
	defer l.recoverPanic(conversation, &err)
	if l.scheduler.busy(conversation) {
		return nil, ErrBusy
	}
	ctx, conv, err := l.opened(ctx, conversation)
	if err != nil {
		return nil, err
	}
	err = errors.Join(conv.Load(ctx), conv.Close(context.WithoutCancel(ctx)))
	return conv.Next(), err
}

// closing is how long suspended turns have to end.
const closing = 10 * time.Second

// Close implements [Engine]. It returns an error if suspended turns have not ended
// after 10 seconds, because a tool or a model ignores its context.
func (l *Local) Close(ctx context.Context) error {
	l.scheduler.close()
	l.stop()
	ended := make(chan struct{})
	go func() {
		l.scheduler.turns.Wait()
		l.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	l.scheduler.stopAll(converse.ErrSuspended)
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("engine: closing: turns have not ended %v after they were told to stop", closing)
	}
}

// wait waits until the pause is over, or until ctx or life ends.
func wait(ctx, life context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-life.Done():
		return ErrClosed
	}
}
