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

// A signal is kept by the server, and nobody learns whether anybody hears it. An
// update is answered by a worker: it says that one lives, and has taken note. It
// is kept by nobody until then, so that what no worker answers in time becomes a
// signal, and so does what a worker of an older version does not know.

// look makes a worker take note that a log has grown, and waits for that, for as
// long as within says.
func (s starter) look(ctx context.Context, conversation string, within time.Duration) error {
	options := s.begun(conversation)
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	operation := s.client.NewWithStartWorkflowOperation(options, workflowName, order{Conversation: conversation})
	err := answer(ctx, within, func(ctx context.Context) (client.WorkflowUpdateHandle, error) {
		// Without an identity of its own the update is a new one each time: the
		// server would answer for one that it knows, even if its workflow has
		// failed since and is to try again.
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

// stopping is how long a worker gets to take note of a cancel.
const stopping = 5 * time.Second

// stop tells the worker that what is under way is not wanted any more, and waits
// as look does. There is no error if nothing is.
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

// none reports whether an error says that no workflow is there.
func none(err error) bool {
	_, none := errors.AsType[*serviceerror.NotFound](err)
	return none
}

// errUnheard is when an update has not been answered in time.
var errUnheard = errors.New("temporal: no worker has answered")

// answer sends an update and waits for its answer. The error is errUnheard when
// there was none in time.
func answer(ctx context.Context, within time.Duration, send func(context.Context) (client.WorkflowUpdateHandle, error)) error {
	ctx, done := context.WithTimeoutCause(ctx, within, errUnheard)
	defer done()
	handle, err := send(ctx)
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	if err != nil && errors.Is(context.Cause(ctx), errUnheard) {
		return errUnheard
	}
	return err
}

// unheard says what it means that the server keeps a signal in place of an update
// that ended with err: that nobody has taken note, or, since a worker has answered
// that it does not know updates, nothing.
func unheard(err error, conversation string, within time.Duration) error {
	if !errors.Is(err, errUnheard) {
		return nil
	}
	return fmt.Errorf("temporal: the server knows of conversation %s, and no worker has taken note within %v", conversation, within)
}
