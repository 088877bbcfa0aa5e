// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
)

// turn is the activity: it carries a conversation on from its log, until it is
// done or waits, for as long as this worker has the lease.
func (w *Worker) turn(ctx context.Context, o order) (outcome, error) {
	info := activity.GetInfo(ctx)
	l := &lease{
		beat:    func(ctx context.Context) error { return w.beat(ctx, info.TaskToken) },
		timeout: info.HeartbeatTimeout,
		stop:    activity.GetWorkerStopChannel(ctx),
		grace:   w.opts.Grace,
	}
	run, end := l.begin(ctx)
	defer end()
	// The server's clock, so that a later attempt has a greater number.
	told := &engine.Publisher{Stream: w.opts.Stream, Log: w.store, Conversation: o.Conversation, Attempt: info.StartedTime.UnixMilli()}
	turn, err := w.carryOn(run, l, told)
	out := outcome{State: stateDone, Idle: w.opts.Idle, Turns: w.opts.Turns}
	switch cause := context.Cause(run); {
	case err == nil && turn.Reason == converse.ReasonWaiting:
		out.State, out.Deadline = stateWaiting, earliest(turn.Waits)
	case err == nil:
	case temporal.IsCanceledError(cause):
		return outcome{}, temporal.NewCanceledError()
	case l.stopping() && errors.Is(cause, converse.ErrSuspended):
		out.State = statePutDown
		return out, nil
	default:
		err := failed(err)
		told.End(ctx, engine.Ended{Error: err.Message(), Again: w.again(info, err)})
		return outcome{}, err
	}
	told.End(ctx, engine.Ended{Reason: turn.Reason, Waits: waited(turn.Waits)})
	return out, nil
}

// carryOn opens the conversation, works, and closes it. A panic is an error.
func (w *Worker) carryOn(ctx context.Context, l *lease, told *engine.Publisher) (turn converse.Turn, err error) {
	id := zap.String(telemetry.ConversationField, told.Conversation)
	defer func() {
		if value := recover(); value != nil {
			panicked := contain.Recovered("a function of the program", value)
			w.opts.Logger.Error("a turn panicked", eventTurnPanicked, id, zap.String("panic", panicked.Error()), zap.ByteString("stack", panicked.Stack))
			err = panicked
		}
		err = contain.Error(err)
	}()
	if _, err := w.store.Info(ctx, told.Conversation); errors.Is(err, history.ErrNotFound) {
		return turn, nil // it was deleted: there is nothing to do, nor to begin anew
	}
	if ctx, err = w.trusted(ctx, told.Conversation); err != nil {
		return turn, err
	}
	talk, err := w.open(ctx, told.Conversation)
	switch {
	case err != nil:
		return turn, fmt.Errorf("the conversation cannot be opened: %w", err)
	case talk == nil || talk.ID() != told.Conversation:
		return turn, fmt.Errorf("the conversation that was opened is not %q: give its Options the ID", told.Conversation)
	}
	defer func() {
		if err := talk.Close(context.WithoutCancel(ctx)); err != nil {
			w.opts.Logger.Error("a conversation could not be closed", eventCloseFailed, id, zap.Error(err))
		}
	}()
	for {
		turn, err = work(ctx, talk, l, told)
		// Somebody has said or answered something meanwhile, and the conversation
		// knows what its calls returned: as long as the lease holds it goes on.
		conflict, is := errors.AsType[*history.ConflictError](err)
		if !is || conflict.Length < conflict.Expected || !l.held(ctx) { // or it was deleted
			return turn, err
		}
	}
}

// work carries a conversation on.
func work(ctx context.Context, talk *converse.Conversation, l *lease, told *engine.Publisher) (turn converse.Turn, err error) {
	for event, err := range talk.Continue(ctx) {
		if err != nil {
			return turn, err
		}
		l.saw(event)
		told.Saw(ctx, talk, event)
		if completed, ok := event.(converse.TurnCompleted); ok {
			turn = completed.Turn
		}
	}
	return turn, nil
}

// trusted adds the values that the program knows of a conversation.
func (w *Worker) trusted(ctx context.Context, conversation string) (context.Context, error) {
	if w.opts.Values == nil {
		return ctx, nil
	}
	info, err := w.store.Info(ctx, conversation)
	if err != nil {
		return ctx, fmt.Errorf("whom the conversation is for: %w", err)
	}
	values, err := w.opts.Values(ctx, info)
	if err != nil {
		return ctx, fmt.Errorf("the trusted values of the conversation: %w", err)
	}
	return invoker.WithTrusted(ctx, values...), nil
}

// again is when the server tries again after a failure; zero if it does not.
func (w *Worker) again(info activity.Info, err *temporal.ApplicationError) time.Time {
	if err.NonRetryable() || int(info.Attempt) >= w.opts.Attempts {
		return time.Time{}
	}
	pause := w.opts.Backoff
	for n := int32(1); n < info.Attempt && pause < maxBackoff; n++ {
		pause *= 2
	}
	return time.Now().Add(min(pause, max(w.opts.Backoff, maxBackoff)))
}

func waited(waits []canister.Wait) (ids []string) {
	for _, wait := range waits {
		ids = append(ids, wait.ID)
	}
	return ids
}

// earliest is the first deadline, or zero if there is none.
func earliest(waits []canister.Wait) (first time.Time) {
	for _, wait := range waits {
		if first.IsZero() || wait.Deadline.Before(first) {
			first = wait.Deadline
		}
	}
	return first
}

// maxFailure is how many bytes of an error a server is told.
const maxFailure = 2 << 10

// failed returns what the server is told of an error: its text, without what is
// in it, and whether trying again can help. What a program has made a
// *temporal.ApplicationError itself stays one.
func failed(err error) *temporal.ApplicationError {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return own
	}
	text := textcut.Bytes(strings.ToValidUTF8(err.Error(), "\uFFFD"), maxFailure)
	told := temporal.NewApplicationErrorWithOptions(text, kind(err), temporal.ApplicationErrorOptions{NonRetryable: engine.Permanent(err)})
	return told.(*temporal.ApplicationError)
}

// kind names an error, for those who watch a server.
func kind(err error) string {
	_, model := errors.AsType[*converse.ModelError](err)
	_, conflict := errors.AsType[*history.ConflictError](err)
	_, panicked := errors.AsType[*contain.Panic](err)
	switch {
	case panicked:
		return "panic"
	case model:
		return "model"
	case conflict:
		return "conflict"
	case errors.Is(err, converse.ErrSuspended):
		return "suspended"
	}
	return "other"
}
