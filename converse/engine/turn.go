// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// turn continues a conversation until it is done or waits, and schedules the next step.
// The desk calls it.
func (l *Local) turn(t *talk) {
	if err := contain.Call("a function of the program", func() { l.work(t) }); err != nil {
		l.clock.forget(t.id)
		l.failures.note(t.id, Ended{Error: err.Error()})
		l.panicked(t.id, err)
	}
}

func (l *Local) work(t *talk) {
	r := &run{Local: l, talk: t, ctx: t.ctx}
	r.told = Publisher{Stream: l.opts.Stream, Log: l.store, Conversation: t.id, Attempt: l.attempt(), Lost: r.lost}
	l.failures.forget(t.id)
	turn, err := r.carryOn()
	var later *laterError
	switch {
	case err == nil && turn.Reason == converse.ReasonWaiting:
		t.tries = tries{}
		l.clock.set(t.id, earliest(turn.Waits), t.tries)
		r.told.End(r.ctx, Ended{Reason: turn.Reason, Waits: identities(turn.Waits)})
	case errors.Is(err, errDeleted): // watchers find out by reading
		l.clock.forget(t.id)
	case err == nil:
		t.tries = tries{}
		l.clock.forget(t.id)
		r.told.End(r.ctx, Ended{Reason: turn.Reason})
	case context.Cause(t.ctx) != nil:
		// Suspended; or cancelled, but not yet in the log. If the cancellation does not
		// get there, the turn is not over.
		l.clock.set(t.id, time.Now().Add(l.opts.pause(0)), t.tries)
	case errors.As(err, &later):
		l.clock.set(t.id, later.until, t.tries)
	case isConflict(err): // another writer is working on it
		pause := l.opts.pause(t.tries.conflicts)
		t.tries.conflicts++
		l.clock.set(t.id, time.Now().Add(pause/2+rand.N(pause)), t.tries)
	default:
		r.failed(err)
	}
}

// attempt returns a number greater than the numbers of all earlier turns, also of
// earlier processes.
func (l *Local) attempt() int64 {
	for {
		last := l.attempts.Load()
		this := max(last+1, time.Now().UnixMicro())
		if l.attempts.CompareAndSwap(last, this) {
			return this
		}
	}
}

// earliest returns the first deadline.
func earliest(waits []canister.Wait) time.Time {
	first := waits[0].Deadline
	for _, wait := range waits {
		if wait.Deadline.Before(first) {
			first = wait.Deadline
		}
	}
	return first
}

// laterError says that another process may be at work on a conversation.
type laterError struct{ until time.Time }

func (e *laterError) Error() string {
	return fmt.Sprintf("engine: another process may be at work until %v", e.until)
}

// errDeleted says that the conversation was deleted: it must be neither continued nor
// created again.
var errDeleted = errors.New("engine: the conversation was deleted")

// calm is deferred. It recovers a panic of a function that the program supplied,
// returns it as an error, and logs it with the stack.
func (l *Local) calm(conversation string, err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("engine: %w", contain.Recovered("a function of the program", value))
		l.panicked(conversation, *err)
		return
	}
	*err = contain.Error(*err)
}

// panicked logs a panic.
func (l *Local) panicked(conversation string, err error) {
	fields := []zap.Field{zap.String(telemetry.ConversationField, conversation), zap.String("panic", err.Error())}
	if cause, ok := errors.AsType[*contain.Panic](err); ok {
		fields = append(fields, zap.ByteString("stack", cause.Stack))
	}
	l.opts.Logger.Error("a turn panicked", append(fields, event.TurnPanicked)...)
}

// run is a running turn.
type run struct {
	*Local
	talk *talk
	ctx  context.Context
	told Publisher
}

// carryOn opens the conversation, works, and closes it. A panic is returned as an
// error.
func (r *run) carryOn() (turn converse.Turn, err error) {
	defer r.calm(r.talk.id, &err)
	if _, err := r.store.Info(r.ctx, r.talk.id); errors.Is(err, history.ErrNotFound) {
		return turn, errDeleted
	}
	if err := r.elsewhere(); err != nil {
		return turn, err
	}
	ctx, talk, err := r.opened(r.ctx, r.talk.id)
	if err != nil {
		return turn, err
	}
	defer func() {
		if closed := talk.Close(context.WithoutCancel(ctx)); closed != nil {
			r.opts.Logger.Error("a conversation could not be closed", event.ConversationFailed, zap.String(telemetry.ConversationField, r.talk.id), zap.Error(closed))
		}
	}()
	for happened, err := range talk.Continue(ctx) {
		if err != nil {
			return turn, err
		}
		r.told.Saw(ctx, talk, happened)
		if completed, ok := happened.(converse.TurnCompleted); ok {
			turn = completed.Turn
		}
	}
	return turn, nil
}

// opened opens an existing conversation with the trusted values of its owner in the
// context.
func (l *Local) opened(ctx context.Context, id string) (context.Context, *converse.Conversation, error) {
	if l.opts.Values != nil {
		info, err := l.store.Info(ctx, id)
		if err != nil {
			return ctx, nil, err
		}
		values, err := l.opts.Values(ctx, info)
		if err != nil {
			return ctx, nil, fmt.Errorf("engine: the trusted values of %q: %w", id, err)
		}
		ctx = invoker.WithTrusted(ctx, values...)
	}
	talk, err := opened(ctx, l.open, id)
	return ctx, talk, err
}

// lost logs a delta that could not be published. Its content is in the log, or will be.
func (r *run) lost(err error) {
	r.opts.Logger.Debug("a delta was lost", event.DeltaLost, zap.String(telemetry.ConversationField, r.talk.id), zap.Error(err))
}

// failed decides whether a failed turn is retried.
func (r *run) failed(err error) {
	ended := Ended{Error: err.Error()}
	id := zap.String(telemetry.ConversationField, r.talk.id)
	if Permanent(err) || r.talk.tries.failed >= r.opts.Retries {
		r.clock.forget(r.talk.id)
		r.opts.Logger.Error("a turn failed, and is not tried again before the next message or the next start", event.TurnFailed, id, zap.Error(err))
	} else {
		pause := r.opts.pause(r.talk.tries.failed)
		r.talk.tries.failed++
		ended.Again = time.Now().Add(pause)
		r.clock.set(r.talk.id, ended.Again, r.talk.tries)
		r.opts.Logger.Warn("a turn failed and is tried again", event.TurnRetried, id, zap.Duration("wait", pause), zap.Error(err))
	}
	ended.Turn = r.told.Turn(r.ctx)
	r.failures.note(r.talk.id, ended)
	r.told.End(r.ctx, ended)
}
