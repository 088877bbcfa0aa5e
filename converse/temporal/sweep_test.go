// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// lastWorkflow is a client of a server that knows one workflow.
type lastWorkflow struct {
	client.Client
	status  enumspb.WorkflowExecutionStatus
	ended   time.Time
	working []*workflowpb.PendingActivityInfo
	woken   int
}

func (l *lastWorkflow) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: l.status, CloseTime: timestamppb.New(l.ended)},
		PendingActivities:     l.working,
	}, nil
}

func (l *lastWorkflow) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return failedRun{}
}

func (l *lastWorkflow) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	l.woken++
	return nil, nil
}

type failedRun struct{ client.WorkflowRun }

func (failedRun) Get(context.Context, any) error { return context.DeadlineExceeded }

// longTurn is a turn with as many exchanges as the default limit allows.
func longTurn(message canister.User) []canister.Canister {
	turn := []canister.Canister{message}
	for n := range converse.DefaultExchanges {
		call := canister.Invocation{Head: canister.Head{ID: fmt.Sprint("i", n)}, Message: fmt.Sprint("a", n), CallID: "c", Name: "look", Arguments: "{}"}
		turn = append(turn, canister.Assistant{Head: canister.Head{ID: call.Message}, Finish: canister.FinishInvocations}, call,
			canister.Result{Head: canister.Head{ID: fmt.Sprint("r", n)}, Invocation: call.ID, Content: canister.Texts("nothing")})
	}
	return turn
}

// A message is found whose wake-up was lost, whenever it came and however the workflow has
// ended. A turn that has reported its end is not repeated.
func TestLostWakeUps(t *testing.T) {
	const idle, young = time.Minute, 5 * time.Second
	message := canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")}
	waiting := []canister.Canister{
		message, canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "ask", Arguments: "{}"},
		canister.Wait{Head: canister.Head{ID: "w"}, Invocation: "i", For: canister.WaitApproval, Deadline: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for _, try := range []struct {
		name   string
		status enumspb.WorkflowExecutionStatus
		ended  time.Duration // after the last change
		log    []canister.Canister
		want   int
		fork   bool // it is a fork that has not begun
	}{
		{"after the end", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, -time.Second, nil, 1, false},
		{"just before the end", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, time.Second, nil, 1, false},
		{"at the beginning of the idle minute", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, idle, nil, 1, false},
		{"and the server's clock is ahead", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, idle + young - 1, nil, 1, false},
		{"before the idle minute", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, idle + young, nil, 0, false},
		{"before a failure", enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, time.Second, nil, 0, false},
		{"after a failure", enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, -time.Second, nil, 1, false},
		{"before a termination", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, time.Hour, nil, 1, false},
		{"before it was cancelled", enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, time.Hour, nil, 1, false},
		{"before it took too long", enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, time.Hour, nil, 1, false},
		{"a long turn before a termination", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, time.Hour, longTurn(message), 1, false},
		{"a long turn before it was cancelled", enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, time.Hour, longTurn(message), 1, false},
		{"a long turn before it took too long", enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, time.Hour, longTurn(message), 1, false},
		{"a long turn that may be over", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, time.Hour, longTurn(message), 0, false},
		{"a wait before a termination", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, time.Hour, waiting, 0, false},
		{"a fork that has not begun", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, -time.Second, nil, 0, true},
	} {
		t.Run(try.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := history.NewMemory()
				if try.log == nil {
					try.log = []canister.Canister{message}
				}
				if err := store.Append(t.Context(), "talk", 0, try.log...); err != nil {
					t.Fatal(err)
				}
				if try.fork {
					if err := errors.Join(store.Fork(t.Context(), "talk", len(try.log), "fork"), store.Delete(t.Context(), "talk", history.AnyLength)); err != nil {
						t.Fatal(err)
					}
				}
				server := &lastWorkflow{status: try.status, ended: time.Now().Add(try.ended)}
				s := sweep{starter: starter{client: server, prefix: defaultPrefix}, store: store, young: young, idle: idle}
				time.Sleep(max(young, try.ended)) // of the bubble
				if woken, err := s.once(t.Context(), history.Filter{Open: true}); err != nil || woken != try.want || server.woken != try.want {
					t.Errorf("woken are %d, %v; want %d", woken, err, try.want)
				}
				// The turn ends again, and appends nothing: a limit has ended it.
				server.status, server.ended = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, time.Now().Add(idle)
				time.Sleep(2 * idle)
				if woken, err := s.once(t.Context(), history.Filter{Open: true}); err != nil || woken != 0 {
					t.Errorf("after that woken are %d, %v; want none", woken, err)
				}
			})
		})
	}
}

// A watcher that comes later sees the failure of a turn also if the clock of the store is a little ahead of the
// server's, and none of a turn that ended more than 5 s before the last message.
func TestALaterWatcherSeesTheFailure(t *testing.T) {
	for ended, want := range map[time.Duration]bool{time.Second: true, -sending: true, -sending - time.Second: false} {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")}); err != nil {
			t.Fatal(err)
		}
		info, err := store.Info(t.Context(), "talk")
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEngine(&lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, ended: info.Changed.Add(ended)}, store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		if failure := (news{Engine: e}).failure(t.Context(), "talk"); (failure.text != "") != want {
			t.Errorf("a workflow that ended %v after the last change has failed with %q", ended, failure.text)
		}
	}
}
