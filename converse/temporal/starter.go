// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// starter signals the workflows of conversations, and starts them if necessary.
type starter struct {
	client client.Client
	queue  string
	prefix string
}

// maxName is the maximum length in bytes of a conversation's ID that is used
// verbatim in a workflow ID. A server accepts IDs of 1000 bytes, and some of its
// databases less.
const maxName = 200

// id returns the workflow ID of a conversation. It is unique.
func (s starter) id(conversation string) string {
	name := conversation
	if len(name) > maxName || strings.HasPrefix(name, "~") {
		sum := sha256.Sum256([]byte(name))
		name = "~" + hex.EncodeToString(sum[:])
	}
	return s.prefix + name
}

// taskTimeout is how long the server waits for a worker to complete a workflow task
// before it gives the worker up for dead. A task takes milliseconds.
const taskTimeout = 5 * time.Second

// signal sends a signal to the workflow of a conversation, and starts the workflow if
// it is not running.
func (s starter) signal(ctx context.Context, conversation, name string) error {
	_, err := s.client.SignalWithStartWorkflow(ctx, s.id(conversation), name, nil, s.begun(conversation), workflowName, order{Conversation: conversation})
	return untold(conversation, err)
}

// begun returns the options that start the workflow of a conversation.
func (s starter) begun(conversation string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                    s.id(conversation),
		TaskQueue:             s.queue,
		WorkflowTaskTimeout:   taskTimeout,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// untold wraps the error of a notification that failed.
func untold(conversation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("temporal: notifying the server of conversation %s: %w", conversation, err)
}

// sight is the server's view of a conversation. The zero value means that the server
// does not know it.
type sight struct {
	status  enumspb.WorkflowExecutionStatus
	working bool      // an activity is running, or will be retried
	resting bool      // the workflow waits
	events  int64     // length of the workflow's history
	ended   time.Time // when the last workflow ended, if it neither works nor rests
	failed  failure   // the failure, if any
}

// failure is the reason why a turn failed, and the time of the next retry.
type failure struct {
	text  string
	again time.Time
}

// seen asks the server about a conversation.
func (s starter) seen(ctx context.Context, conversation string) (sight, error) {
	described, err := s.client.DescribeWorkflowExecution(ctx, s.id(conversation), "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return sight{}, nil
	}
	if err != nil {
		return sight{}, fmt.Errorf("temporal: querying the server about conversation %s: %w", conversation, err)
	}
	info := described.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		working := described.GetPendingActivities()
		now := sight{status: info.GetStatus(), working: len(working) > 0, resting: len(working) == 0, events: info.GetHistoryLength()}
		// While an attempt is running, the failure of the previous one is not reported
		// again.
		if now.working && working[0].GetLastFailure() != nil && working[0].GetNextAttemptScheduleTime() != nil && working[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			now.failed = failure{text: working[0].GetLastFailure().GetMessage(), again: working[0].GetNextAttemptScheduleTime().AsTime()}
		}
		return now, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		err := s.client.GetWorkflow(ctx, s.id(conversation), info.GetExecution().GetRunId()).Get(ctx, nil)
		return sight{status: info.GetStatus(), ended: info.GetCloseTime().AsTime(), failed: failure{text: reasonOf(err)}}, nil
	}
	return sight{status: info.GetStatus(), ended: info.GetCloseTime().AsTime()}, nil
}

// reasonOf returns the reason of a failure, as the activity or the server reported it.
func reasonOf(err error) string {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return own.Message()
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return "the worker stopped responding: " + timeout.Error()
	}
	return err.Error()
}
