// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/elsewhere"
	"github.com/consort-go/consort/converse/internal/opening"
	"github.com/consort-go/consort/converse/internal/programerror"
	"github.com/consort-go/consort/converse/internal/unsaved"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
)

// turn is the activity: it continues a conversation from its log, until it is done or
// waits, while this worker holds the lease.
func (w *Worker) turn(ctx context.Context, o order) (outcome, error) {
	info := activity.GetInfo(ctx)
	l := &lease{
		beat:    func(ctx context.Context) error { return w.beat(ctx, info.TaskToken) },
		timeout: info.HeartbeatTimeout,
		stop:    w.stopping.Done(),
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
		out.State, out.Deadline = stateWaiting, calls.FirstDeadline(turn.Waits)
	case err == nil:
	case temporal.IsCanceledError(cause):
		return outcome{}, temporal.NewCanceledError()
	case l.stopping() && errors.Is(cause, converse.ErrSuspended):
		out.State = statePutDown
		return out, nil
	default:
		w.opts.Logger.Warn("a turn failed", eventTurnFailed, zap.String(telemetry.ConversationField, o.Conversation), zap.Error(err))
		err := failed(err)
		told.End(ctx, engine.Ended{Error: err.Message(), Again: w.again(info, err)})
		return outcome{}, err
	}
	told.End(ctx, engine.Ended{Reason: turn.Reason, Waits: calls.WaitIDs(turn.Waits)})
	return out, nil
}

// carryOn carries a conversation on, again if a message enters before the work begins: its
// author may have other trusted values.
func (w *Worker) carryOn(ctx context.Context, l *lease, told *engine.Publisher) (converse.Turn, error) {
	for {
		turn, err := w.carryOnOnce(ctx, l, told)
		if _, is := errors.AsType[*elsewhere.Error](err); !is || !l.held(ctx) {
			return turn, err
		}
	}
}

// carryOnOnce opens the conversation, works, and closes it. A panic is returned as an
// error.
func (w *Worker) carryOnOnce(ctx context.Context, l *lease, told *engine.Publisher) (turn converse.Turn, err error) {
	id := zap.String(telemetry.ConversationField, told.Conversation)
	defer func() {
		if value := recover(); value != nil {
			panicked := contain.Recovered("a function of the program", value)
			w.opts.Logger.Error("a turn panicked", eventTurnPanicked, id, zap.String("panic", panicked.Error()), zap.ByteString("stack", panicked.Stack))
			err = &programerror.Error{What: "a function of the program panicked", Cause: panicked}
		}
		err = contain.Error(err)
	}()
	if _, err := w.store.Info(ctx, told.Conversation); errors.Is(err, history.ErrNotFound) {
		return turn, nil // it was deleted: neither continue it nor create it again
	}
	if ctx, err = w.trusted(ctx, told.Conversation); err != nil {
		return turn, err
	}
	talk, err := opening.Open(ctx, w.open, told.Conversation)
	if err != nil {
		return turn, err
	}
	defer func() {
		if err := talk.Close(context.WithoutCancel(ctx)); err != nil {
			w.opts.Logger.Error("a conversation could not be closed", eventCloseFailed, id, zap.Error(err))
		}
	}()
	for failures := 0; ; {
		turn, err = work(ctx, talk, l, told)
		// The conversation knows what its calls returned: it continues while the lease is
		// valid.
		conflict, is := errors.AsType[*history.ConflictError](err)
		switch {
		case is && conflict.Length >= conflict.Expected: // a message or an answer has been appended; less: it was deleted
		case !is && unsaved.Is(err) && !engine.Permanent(err) && failures < w.opts.Attempts:
			w.opts.Logger.Warn("the log did not accept what a turn did, which is tried again", eventTurnRetried, id, zap.Error(err))
			wait(ctx, w.pause(failures))
			failures++
		default:
			return turn, err
		}
		if !l.held(ctx) {
			return turn, err
		}
	}
}

// wait waits until a pause is over, or ctx ends.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pause returns the pause after a number of failures, counted from 0.
func (w *Worker) pause(n int) time.Duration {
	pause := w.opts.Backoff
	for ; n > 0 && pause < maxBackoff; n-- {
		pause *= 2
	}
	return min(pause, max(w.opts.Backoff, maxBackoff))
}

// work runs a conversation.
func work(ctx context.Context, talk *converse.Conversation, l *lease, told *engine.Publisher) (turn converse.Turn, err error) {
	for event, err := range talk.Continue(ctx) {
		if err != nil {
			return turn, err
		}
		l.saw(event)
		told.Observe(ctx, talk, event)
		if completed, ok := event.(converse.TurnCompleted); ok {
			turn = completed.Turn
		}
	}
	return turn, nil
}

// trusted adds the trusted values that the program supplies for a conversation. Work with the
// context fails if a message enters before it begins.
func (w *Worker) trusted(ctx context.Context, conversation string) (context.Context, error) {
	if w.opts.Values == nil {
		return ctx, nil
	}
	_, canisters, err := engine.LastTurn(ctx, w.store, conversation, time.Now())
	if err != nil {
		return ctx, err
	}
	ctx = elsewhere.For(ctx, conversation, canisters)
	info, err := w.store.Info(ctx, conversation)
	if err != nil {
		return ctx, fmt.Errorf("the owner of the conversation: %w", err)
	}
	values, err := w.opts.Values(ctx, info)
	if err != nil {
		return ctx, &programerror.Error{What: "the trusted values of the conversation cannot be had", Cause: err}
	}
	return invoker.WithTrusted(ctx, values...), nil
}

// again returns the time of the server's next retry after a failure; zero means never.
func (w *Worker) again(info activity.Info, err *temporal.ApplicationError) time.Time {
	if err.NonRetryable() || int(info.Attempt) >= w.opts.Attempts {
		return time.Time{}
	}
	return time.Now().Add(w.pause(int(info.Attempt) - 1))
}

// maxFailure is how many bytes of an error are sent to the server.
const maxFailure = 2 << 10

// failed returns the error sent to the server: the text of err, without the wrapped
// errors, and whether a retry can help. If err contains a *temporal.ApplicationError
// from the program, failed returns that.
func failed(err error) *temporal.ApplicationError {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return own
	}
	text := textcut.Bytes(strings.ToValidUTF8(programerror.PublicText(err), "\uFFFD"), maxFailure)
	told := temporal.NewApplicationErrorWithOptions(text, kind(err), temporal.ApplicationErrorOptions{NonRetryable: engine.Permanent(err)})
	return told.(*temporal.ApplicationError)
}

// kind returns the type of an error, for the operators of the server.
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
