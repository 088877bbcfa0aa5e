// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// The server stores a signal, but does not report whether a worker has received it. An
// update is answered by a worker, which shows that a worker is alive and has
// acknowledged it. The server does not store an update before that, so if no worker
// answers in time, or the worker is an older version that does not know updates, a
// signal is sent instead.

// look notifies a worker that a log has grown, and waits up to within for its
// acknowledgement.
func (s starter) look(ctx context.Context, conversation string, within time.Duration) error {
	options := s.begun(conversation)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	operation := s.client.NewWithStartWorkflowOperation(options, workflowName, order{Conversation: conversation})
	err := answer(ctx, within, func(ctx context.Context) (client.WorkflowUpdateHandle, error) {
		// The update has no ID of its own and so is a new one each time: the
		// server would answer for an update that it knows, even if its workflow has
		// failed since and must be retried.
		return s.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: operation,
			UpdateOptions:          client.UpdateWorkflowOptions{UpdateName: lookUpdate, WaitForStage: client.WorkflowUpdateStageCompleted},
		})
	})
	if err == nil {
		return nil
	}
	if err := s.signal(ctx, conversation, wakeSignal); err != nil {
		return err
	}
	return unheard(err, conversation, within)
}

// stopping is how long a worker has to acknowledge a cancel.
const stopping = 5 * time.Second

// stop notifies the worker that the running work is cancelled, and waits as look does.
// It returns nil if nothing is running.
func (s starter) stop(ctx context.Context, conversation string, within time.Duration) error {
	err := answer(ctx, within, func(ctx context.Context) (client.WorkflowUpdateHandle, error) {
		return s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: s.id(conversation), UpdateName: stopUpdate, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
	})
	if refusal, ok := errors.AsType[*temporal.ApplicationError](err); err == nil || none(err) || ok && refusal.Type() == refusedIdle {
		return nil
	}
	if err := s.client.SignalWorkflow(ctx, s.id(conversation), "", cancelSignal, nil); none(err) {
		return nil
	} else if err != nil {
		return untold(conversation, err)
	}
	return unheard(err, conversation, within)
}

// none reports whether an error says that the workflow does not exist.
func none(err error) bool {
	_, none := errors.AsType[*serviceerror.NotFound](err)
	return none
}

// errUnheard says that an update has not been answered in time.
var errUnheard = errors.New("temporal: no worker has answered")

// answer sends an update and waits for its answer. The error is errUnheard if no answer
// came in time. The server, which knows the deadline, may say so before ctx ends.
func answer(caller context.Context, within time.Duration, send func(context.Context) (client.WorkflowUpdateHandle, error)) error {
	ctx, done := context.WithTimeoutCause(caller, within, errUnheard)
	defer done()
	handle, err := send(ctx)
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	_, isLate := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	if isLate && caller.Err() == nil || err != nil && errors.Is(context.Cause(ctx), errUnheard) {
		return errUnheard
	}
	return err
}

// unheard returns the error to report when the server has a signal instead of an update
// that ended with err: if the update was not answered in time, that no worker has
// acknowledged it; otherwise nil, because a worker has answered that it does not know
// updates.
func unheard(err error, conversation string, within time.Duration) error {
	if !errors.Is(err, errUnheard) {
		return nil
	}
	return fmt.Errorf("temporal: the server was notified of conversation %s, but no worker confirmed it within %v", conversation, within)
}
