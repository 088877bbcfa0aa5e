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

// starter makes the workflow of a conversation look at its log.
type starter struct {
	client client.Client
	queue  string
	prefix string
}

// maxName is up to how many bytes the ID of a workflow shows the identity of its
// conversation. A server takes 1000 in all, and some of its databases less.
const maxName = 200

// id is the ID of the workflow of a conversation: no two have the same.
func (s starter) id(conversation string) string {
	name := conversation
	if len(name) > maxName || strings.HasPrefix(name, "~") {
		sum := sha256.Sum256([]byte(name))
		name = "~" + hex.EncodeToString(sum[:])
	}
	return s.prefix + name
}

// taskTimeout is after how long a worker that was given a step of a workflow, which
// takes milliseconds, is taken for dead.
const taskTimeout = 5 * time.Second

// signal sends a signal to the workflow of a conversation, which it starts if
// there is none at work.
func (s starter) signal(ctx context.Context, conversation, name string) error {
	_, err := s.client.SignalWithStartWorkflow(ctx, s.id(conversation), name, nil, s.begun(conversation), workflowName, order{Conversation: conversation})
	return untold(conversation, err)
}

// begun is how the workflow of a conversation is started.
func (s starter) begun(conversation string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                    s.id(conversation),
		TaskQueue:             s.queue,
		WorkflowTaskTimeout:   taskTimeout,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// untold says what a server was to be told when err came.
func untold(conversation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("temporal: the server cannot be told of conversation %s: %w", conversation, err)
}

// sight is what the server knows of a conversation. The zero value is that of
// one it knows nothing of.
type sight struct {
	working bool      // an activity is under way, or is to be tried again
	resting bool      // the workflow waits
	events  int64     // how long the history of the workflow is
	ended   time.Time // when the last workflow did, if it neither works nor rests
	failed  failure   // what is wrong, if anything is
}

// failure is why a turn has not come to its end, and when it is tried again.
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
		return sight{}, fmt.Errorf("temporal: the server does not tell of conversation %s: %w", conversation, err)
	}
	info := described.GetWorkflowExecutionInfo()
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		working := described.GetPendingActivities()
		now := sight{working: len(working) > 0, resting: len(working) == 0, events: info.GetHistoryLength()}
		// Of an attempt that is under way it is no news that the one before failed.
		if now.working && working[0].GetLastFailure() != nil && working[0].GetNextAttemptScheduleTime() != nil && working[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			now.failed = failure{text: working[0].GetLastFailure().GetMessage(), again: working[0].GetNextAttemptScheduleTime().AsTime()}
		}
		return now, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		err := s.client.GetWorkflow(ctx, s.id(conversation), info.GetExecution().GetRunId()).Get(ctx, nil)
		return sight{ended: info.GetCloseTime().AsTime(), failed: failure{text: reasonOf(err)}}, nil
	}
	return sight{ended: info.GetCloseTime().AsTime()}, nil
}

// reasonOf is what an activity said of its failure, or the server for it.
func reasonOf(err error) string {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return own.Message()
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return "the worker fell silent: " + timeout.Error()
	}
	return err.Error()
}
