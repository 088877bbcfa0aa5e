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
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// turn continues a conversation until it is done or waits, and schedules the next step.
// The scheduler calls it.
func (l *Local) turn(t *slot) {
	if err := contain.Call("a function of the program", func() { l.runTurn(t) }); err != nil {
		l.checks.forget(t.id)
		l.failures.note(t.id, Ended{Error: err.Error(), Attempt: l.attempt()})
		l.panicked(t.id, err)
	}
}

func (l *Local) runTurn(t *slot) {
	r := &run{Local: l, slot: t, ctx: t.ctx}
	r.publisher = Publisher{Stream: l.opts.Stream, Log: l.store, Conversation: t.id, Attempt: l.attempt(), Lost: r.lost}
	l.failures.forget(t.id)
	turn, err := r.continueConversation()
	var later *laterError
	switch {
	case err == nil && turn.Reason == converse.ReasonWaiting:
		t.tries = tries{}
		l.checks.set(t.id, earliest(turn.Waits), t.tries)
		r.publisher.End(r.ctx, Ended{Reason: turn.Reason, Waits: identities(turn.Waits)})
	case errors.Is(err, errDeleted): // watchers find out by reading
		l.checks.forget(t.id)
	case err == nil:
		t.tries = tries{}
		l.checks.forget(t.id)
		r.publisher.End(r.ctx, Ended{Reason: turn.Reason})
	case context.Cause(t.ctx) != nil:
		// Suspended; or cancelled, but not yet in the log. If the cancellation does not
		// get there, the turn is not over.
		l.checks.set(t.id, time.Now().Add(l.opts.pause(0)), t.tries)
	case errors.As(err, &later):
		l.checks.set(t.id, later.until, t.tries)
	case isConflict(err): // another writer is working on it
		pause := l.opts.pause(t.tries.conflicts)
		t.tries.conflicts++
		l.checks.set(t.id, time.Now().Add(pause/2+rand.N(pause)), t.tries)
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
	return fmt.Sprintf("engine: another process may be working on the conversation until %v", e.until)
}

// errDeleted says that the conversation was deleted: it must be neither continued nor
// created again.
var errDeleted = errors.New("engine: the conversation was deleted")

// recoverPanic is deferred. It recovers a panic of a function that the program supplied,
// returns it as an error, and logs it with the stack.
func (l *Local) recoverPanic(conversation string, err *error) {
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
	l.opts.Logger.Error("a turn panicked", append(fields, logevent.TurnPanicked)...)
}

// run is a running turn.
type run struct {
	*Local
	slot      *slot
	ctx       context.Context
	publisher Publisher
}

// continueConversation opens the conversation, works, and closes it. A panic is returned as an
// error.
func (r *run) continueConversation() (turn converse.Turn, err error) {
	defer r.recoverPanic(r.slot.id, &err)
	if _, err := r.store.Info(r.ctx, r.slot.id); errors.Is(err, history.ErrNotFound) {
		return turn, errDeleted
	}
	if err := r.busyElsewhere(); err != nil {
		return turn, err
	}
	ctx, conv, err := r.opened(r.ctx, r.slot.id)
	if err != nil {
		return turn, err
	}
	defer func() {
		if closed := conv.Close(context.WithoutCancel(ctx)); closed != nil {
			r.opts.Logger.Error("a conversation could not be closed", logevent.ConversationFailed, zap.String(telemetry.ConversationField, r.slot.id), zap.Error(closed))
		}
	}()
	for happened, err := range conv.Continue(ctx) {
		if err != nil {
			return turn, err
		}
		r.publisher.Observe(ctx, conv, happened)
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
	conv, err := opened(ctx, l.open, id)
	return ctx, conv, err
}

// lost logs a delta that could not be published. Its content is in the log, or will be.
func (r *run) lost(err error) {
	r.opts.Logger.Debug("a delta was lost", logevent.DeltaLost, zap.String(telemetry.ConversationField, r.slot.id), zap.Error(err))
}

// failed decides whether a failed turn is retried.
func (r *run) failed(err error) {
	ended := Ended{Error: err.Error(), Attempt: r.publisher.Attempt}
	id := zap.String(telemetry.ConversationField, r.slot.id)
	if Permanent(err) || r.slot.tries.failed >= r.opts.Retries {
		r.checks.forget(r.slot.id)
		r.opts.Logger.Error("a turn failed, and is not retried before the next message or the next start", logevent.TurnFailed, id, zap.Error(err))
	} else {
		pause := r.opts.pause(r.slot.tries.failed)
		r.slot.tries.failed++
		ended.Again = time.Now().Add(pause)
		r.checks.set(r.slot.id, ended.Again, r.slot.tries)
		r.opts.Logger.Warn("a turn failed and will be retried", logevent.TurnRetried, id, zap.Duration("wait", pause), zap.Error(err))
	}
	ended.Turn = r.publisher.Turn(r.ctx)
	r.failures.note(r.slot.id, ended)
	r.publisher.End(r.ctx, ended)
}
