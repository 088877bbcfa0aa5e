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
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
)

// turn is the activity: it carries a conversation on from its log, until it is
// done or waits, for as long as this worker has the lease.
func (w *Worker) turn(ctx context.Context, o work) (outcome, error) {
	info := activity.GetInfo(ctx)
	l := &lease{
		beat:    func(ctx context.Context) error { return w.beat(ctx, info.TaskToken) },
		timeout: info.HeartbeatTimeout,
		stop:    activity.GetWorkerStopChannel(ctx),
		grace:   w.opts.Grace,
	}
	run, end := l.begin(ctx)
	defer end()
	out := outcome{State: stateDone, Idle: w.opts.Idle, Turns: w.opts.Turns, Attempts: o.Attempts + int(info.Attempt)}
	turn, err := w.carryOn(run, l, o, out.Attempts)
	switch {
	case err == nil && turn.Reason == converse.ReasonWaiting:
		out.State, out.Deadline = stateWaiting, earliest(turn.Waits)
	case err == nil:
	case l.stopping() && errors.Is(context.Cause(run), converse.ErrSuspended):
		out.State = statePutDown
	case errors.Is(context.Cause(run), errCancelled): // and the calls are answered
	default:
		return outcome{}, failed(err)
	}
	return out, nil
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
func failed(err error) error {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return own
	}
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > maxFailure {
		text = strings.ToValidUTF8(text[:maxFailure], "") + "…"
	}
	return temporal.NewApplicationErrorWithOptions(text, kind(err), temporal.ApplicationErrorOptions{NonRetryable: permanent(err)})
}

// permanent reports whether the same work would fail the same way again.
func permanent(err error) bool {
	if model, ok := errors.AsType[*converse.ModelError](err); ok {
		return !model.Retryable
	}
	_, corrupt := errors.AsType[*history.CorruptError](err)
	return corrupt || errors.Is(err, history.ErrNewer)
}

// kind names an error, for those who watch a server.
func kind(err error) string {
	_, model := errors.AsType[*converse.ModelError](err)
	_, conflict := errors.AsType[*history.ConflictError](err)
	switch {
	case model:
		return "model"
	case conflict:
		return "conflict"
	case errors.Is(err, converse.ErrSuspended):
		return "suspended"
	}
	return "other"
}

// carryOn opens the conversation, works, and closes it.
func (w *Worker) carryOn(ctx context.Context, l *lease, o work, attempt int) (converse.Turn, error) {
	talk, err := w.open(ctx, o.Conversation)
	if err != nil {
		return converse.Turn{}, fmt.Errorf("the conversation cannot be opened: %w", err)
	}
	defer func() {
		if err := talk.Close(context.WithoutCancel(ctx)); err != nil {
			w.opts.Logger.Warn("a conversation could not be closed", eventCloseFailed, zap.String(telemetry.ConversationField, o.Conversation), zap.Error(err))
		}
	}()
	var turn converse.Turn
	for event, err := range talk.Continue(ctx) {
		if err != nil {
			return turn, err
		}
		l.saw(event)
		if completed, ok := event.(converse.TurnCompleted); ok {
			turn = completed.Turn
		}
	}
	return turn, nil
}
