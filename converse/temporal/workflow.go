// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// What a server knows the workflow by. These names, and what is sent under
// them, are for ever: a workflow that waits may have been started years ago.
const (
	workflowName = "consort.conversation"
	turnName     = "consort.turn"
	wakeSignal   = "wake"   // the log has grown: look at it
	cancelSignal = "cancel" // the person wants no more of what is under way
)

// order is what the workflow is started with.
type order struct {
	Conversation string `json:"conversation"`
	// Attempts is how many times the turn has been tried by then.
	Attempts int `json:"attempts,omitempty"`
	// Cancel says that a cancel has come that nothing has been done about.
	Cancel bool `json:"cancel,omitempty"`
}

// work is what the activity is asked to do: to carry on from the log until the
// conversation is done or waits.
type work struct {
	Conversation string `json:"conversation"`
	Attempts     int    `json:"attempts,omitempty"` // before this activity's first
	// Cancel asks to end what is open, as the person's cancel does.
	Cancel bool `json:"cancel,omitempty"`
}

// outcome is what an activity came to. What the options of a worker say comes
// with it too, since a workflow may decide by nothing but its history.
type outcome struct {
	State    state     `json:"state"`
	Deadline time.Time `json:"deadline,omitzero"` // of stateWaiting; zero is none
	Attempts int       `json:"attempts,omitempty"`
	// Idle is how long the workflow stays when there is nothing to do, and Turns
	// after how many activities it begins its history anew.
	Idle  time.Duration `json:"idle,omitempty"`
	Turns int           `json:"turns,omitempty"`
}

// state is how an activity left a conversation.
type state string

const (
	stateDone    state = "done"
	stateWaiting state = "waiting"
	// statePutDown: the worker is to stop, and another is to carry on at once.
	statePutDown state = "put_down"
)

// conversation is the workflow: one for each conversation that has something to
// do, or has just had. It holds nothing that the log does not say. Each turn of
// the loop is one activity, which carries the conversation on from its log, and
// then a wait: for a signal, for the earliest deadline, or for a while before
// the workflow ends. Since whatever wakes it has been appended to the log before,
// a signal carries nothing, and many are as good as one.
func conversation(ctx workflow.Context, o order) error {
	wake := workflow.GetSignalChannel(ctx, wakeSignal)
	cancel := workflow.GetSignalChannel(ctx, cancelSignal)
	w := work{Conversation: o.Conversation, Attempts: o.Attempts, Cancel: o.Cancel}
	for turns := 1; ; turns++ {
		drain(wake)
		out, err := carryOn(ctx, cancel, w)
		woken := drain(wake)
		if err != nil && !(woken && ctx.Err() == nil) {
			return err
		}
		w.Attempts, w.Cancel = out.Attempts, false
		if err == nil && !woken && out.State != statePutDown {
			woken, w.Cancel = rest(ctx, wake, cancel, out)
			if !woken && !w.Cancel {
				return ctx.Err()
			}
		}
		if turns >= out.Turns && out.Turns > 0 || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			w.Cancel = drain(cancel) || w.Cancel
			return workflow.NewContinueAsNewError(ctx, workflowName, order(w))
		}
	}
}

// carryOn runs one activity. A cancel that comes meanwhile ends it; when nobody
// is left to say that it did, since the worker has died, another activity ends
// what is open.
func carryOn(ctx workflow.Context, cancel workflow.ReceiveChannel, w work) (out outcome, err error) {
	scope, stop := workflow.WithCancel(ctx)
	turn := workflow.ExecuteActivity(scope, turnName, w)
	cancelled := false
	for selector := workflow.NewSelector(ctx).
		AddFuture(turn, func(workflow.Future) {}).
		AddReceive(cancel, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			cancelled = true
			stop()
		}); !turn.IsReady(); {
		selector.Select(ctx)
	}
	err = turn.Get(ctx, &out)
	if err != nil && cancelled && ctx.Err() == nil {
		w.Cancel = true
		err = workflow.ExecuteActivity(ctx, turnName, w).Get(ctx, &out)
	}
	return out, err
}

// rest waits until there is something to do again. It returns false twice when
// nothing came for as long as the workflow may stay.
func rest(ctx workflow.Context, wake, cancel workflow.ReceiveChannel, out outcome) (woken, cancelled bool) {
	scope, stop := workflow.WithCancel(ctx)
	defer stop()
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.AddReceive(wake, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); woken = true })
	selector.AddReceive(cancel, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		cancelled = out.State == stateWaiting // what is done cannot be cancelled
	})
	var over bool
	switch {
	case out.State == stateDone:
		selector.AddFuture(workflow.NewTimer(scope, out.Idle), func(workflow.Future) { over = true })
	case !out.Deadline.IsZero():
		selector.AddFuture(workflow.NewTimer(scope, until(ctx, out.Deadline)), func(workflow.Future) { woken = true })
	}
	for !woken && !cancelled && !over && ctx.Err() == nil {
		selector.Select(ctx)
	}
	return woken, cancelled
}

// until is how long a deadline is away. The clocks of workers differ: one that
// looks too early asks for a little more.
func until(ctx workflow.Context, deadline time.Time) time.Duration {
	return max(deadline.Sub(workflow.Now(ctx)), time.Second)
}

// drain takes what has come so far, and reports whether there was anything.
func drain(c workflow.ReceiveChannel) (any bool) {
	for c.ReceiveAsync(nil) {
		any = true
	}
	return any
}

// turnOptions are those of the activity. No decision of the workflow depends on
// them, so they may change while workflows run.
func turnOptions(o *WorkerOptions) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		StartToCloseTimeout: o.Turn,
		HeartbeatTimeout:    o.Heartbeat,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    o.Backoff,
			BackoffCoefficient: 2,
			MaximumInterval:    max(o.Backoff, maxBackoff),
			MaximumAttempts:    int32(o.Attempts),
		},
	}
}

// workflowOf is the workflow as a worker with these options runs it.
func workflowOf(o *WorkerOptions) func(workflow.Context, order) error {
	return func(ctx workflow.Context, in order) error {
		return conversation(workflow.WithActivityOptions(ctx, turnOptions(o)), in)
	}
}
