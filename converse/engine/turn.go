// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/elsewhere"
	"github.com/consort-go/consort/converse/internal/opening"
	"github.com/consort-go/consort/converse/internal/programerror"
	"github.com/consort-go/consort/converse/internal/unsaved"
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
		l.failures.note(t.id, Ended{Error: programerror.PublicText(&programerror.Error{What: panicText, Cause: err}), Attempt: l.attempt()}, 0)
		l.panicked(t.id, err)
	}
}

func (l *Local) runTurn(t *slot) {
	r := &run{Local: l, slot: t, ctx: t.ctx}
	r.begin()
	turn, err := r.continueConversation()
	if err == nil {
		t.tries = tries{}
	}
	if err == nil || errors.Is(err, errDeleted) { // no call is under way
		l.begun.Forget(t.id)
	}
	var later *elsewhere.Error
	switch {
	case err == nil && turn.Reason == converse.ReasonWaiting:
		l.checks.set(t.id, calls.FirstDeadline(turn.Waits), t.tries)
		r.publisher.End(r.ctx, Ended{Reason: turn.Reason, Waits: calls.WaitIDs(turn.Waits)})
	case errors.Is(err, errDeleted): // watchers find out by reading
		l.checks.forget(t.id)
	case err == nil:
		l.checks.forget(t.id)
		r.over(turn.Reason)
	case context.Cause(t.ctx) != nil:
		// Suspended; or cancelled, but not yet in the log. If the cancellation does not
		// get there, the turn is not over.
		l.checks.set(t.id, time.Now().Add(l.opts.pause(0)), t.tries)
	case errors.As(err, &later):
		l.checks.set(t.id, later.Until, t.tries)
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

// errDeleted says that the conversation was deleted: it must be neither continued nor
// created again.
var errDeleted = errors.New("engine: the conversation was deleted")

// panicText is the public text of a panic.
const panicText = "engine: a function of the program panicked"

// recoverPanic is deferred. It recovers a panic of a function that the program supplied,
// returns it as an error, and logs it with the stack.
func (l *Local) recoverPanic(conversation string, err *error) {
	if value := recover(); value != nil {
		*err = &programerror.Error{What: panicText, Cause: contain.Recovered("a function of the program", value)}
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

// begin begins an attempt.
func (r *run) begin() {
	r.publisher = Publisher{Stream: r.opts.Stream, Log: r.store, Conversation: r.slot.id, Attempt: r.attempt(), Lost: r.lost}
	r.failures.forget(r.slot.id)
}

// continueConversation opens the conversation, works, and closes it. A panic is returned as an
// error.
func (r *run) continueConversation() (turn converse.Turn, err error) {
	defer r.recoverPanic(r.slot.id, &err)
	if _, err := r.store.Info(r.ctx, r.slot.id); errors.Is(err, history.ErrNotFound) {
		return turn, errDeleted
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
	if r.opts.Others > 0 {
		ctx = elsewhere.With(ctx, r.slot.id, r.opts.Others, &r.begun)
	}
	for {
		if turn, err = r.work(ctx, conv); !r.triesAgain(err) {
			break
		}
		r.begin()
	}
	if err == nil && conv.Length() == 0 {
		return turn, errDeleted // after Info
	}
	return turn, err
}

// work runs the conversation until its turn is done or waits.
func (r *run) work(ctx context.Context, conv *converse.Conversation) (turn converse.Turn, err error) {
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

// triesAgain reports whether a turn that has failed is to be tried again with the same
// conversation, because it knows results of calls that the log did not accept. It reports
// the failure and waits as before any retry, but not once the engine is closed. A conflict
// ends this: another process has recorded something else.
func (r *run) triesAgain(err error) bool {
	if !unsaved.Is(err) || isConflict(err) || r.ctx.Err() != nil || !r.mayRetry(err) {
		return false
	}
	_ = wait(r.ctx, r.lifetime, time.Until(r.reportFailure(err)))
	return r.ctx.Err() == nil
}

// opened opens an existing conversation with the trusted values of its owner in the
// context. Work with the context fails if a message enters before it begins, because its
// author may have other values.
func (l *Local) opened(ctx context.Context, id string) (context.Context, *converse.Conversation, error) {
	if l.opts.Values != nil {
		_, canisters, err := LastTurn(ctx, l.store, id, time.Now())
		if err != nil {
			return ctx, nil, err
		}
		ctx = elsewhere.For(ctx, id, canisters)
		info, err := l.store.Info(ctx, id)
		if err != nil {
			return ctx, nil, err
		}
		values, err := l.opts.Values(ctx, info)
		if err != nil {
			return ctx, nil, &programerror.Error{What: fmt.Sprintf("engine: the trusted values of %q cannot be had", id), Cause: err}
		}
		ctx = invoker.WithTrusted(ctx, values...)
	}
	conv, err := opening.Open(ctx, l.open, id)
	return ctx, conv, err
}

// lost logs a delta that could not be published. Its content is in the log, or will be.
func (r *run) lost(err error) {
	r.opts.Logger.Debug("a delta was lost", logevent.DeltaLost, zap.String(telemetry.ConversationField, r.slot.id), zap.Error(err))
}

// over reports that a turn is over. The log does not show that a budget has ended it.
func (r *run) over(reason converse.Reason) {
	ended := Ended{Reason: reason}
	if reason == converse.ReasonBudget {
		ended.Turn, ended.Attempt = r.publisher.Turn(r.ctx), r.publisher.Attempt
		r.note(ended)
	}
	r.publisher.End(r.ctx, ended)
}

// note records an end that the log does not show, for later watchers.
func (r *run) note(ended Ended) {
	info, _ := r.store.Info(r.ctx, r.slot.id) // otherwise the length is not known
	r.failures.note(r.slot.id, ended, info.Length)
}

// failed reports a failed turn and schedules its retry, if there is one.
func (r *run) failed(err error) {
	if again := r.reportFailure(err); again.IsZero() {
		r.checks.forget(r.slot.id)
	} else {
		r.checks.set(r.slot.id, again, r.slot.tries)
	}
}

// mayRetry reports whether a turn that failed with err is retried.
func (r *run) mayRetry(err error) bool {
	return !Permanent(err) && r.slot.tries.failed < r.opts.Retries
}

// reportFailure logs and publishes the failure of a turn, and returns the time of its
// retry; zero means that it is not retried.
func (r *run) reportFailure(err error) time.Time {
	ended := Ended{Error: programerror.PublicText(err), Attempt: r.publisher.Attempt}
	id := zap.String(telemetry.ConversationField, r.slot.id)
	if !r.mayRetry(err) {
		r.opts.Logger.Error("a turn failed, and is not retried before the next message or the next start", logevent.TurnFailed, id, zap.Error(err))
	} else {
		pause := r.opts.pause(r.slot.tries.failed)
		r.slot.tries.failed++
		ended.Again = time.Now().Add(pause)
		r.opts.Logger.Warn("a turn failed and will be retried", logevent.TurnRetried, id, zap.Duration("wait", pause), zap.Error(err))
	}
	ended.Turn = r.publisher.Turn(r.ctx)
	r.note(ended)
	r.publisher.End(r.ctx, ended)
	return ended.Again
}
