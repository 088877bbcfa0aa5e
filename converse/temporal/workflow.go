// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The names under which a server knows the workflow. These names and their payloads
// must never change: a waiting workflow may have been started years ago.
const (
	workflowName = "consort.conversation"
	turnName     = "consort.turn"
	wakeSignal   = "wake"   // the log has grown: read it
	cancelSignal = "cancel" // the same, and running work is cancelled
	lookUpdate   = "look"   // like wakeSignal, for callers that wait for an acknowledgement
	stopUpdate   = "stop"   // like cancelSignal; refused if nothing is under way
)

// The reasons to refuse an update: the types of the errors.
const (
	refusedIdle    = "idle"    // nothing to stop
	refusedClosing = "closing" // the workflow is about to end, and does not read the log again
)

// order is the input of the workflow and its activity: continue a conversation from its
// log, until it is done or waits.
type order struct {
	Conversation string `json:"conversation"`
}

// outcome is the result of an activity. It includes settings from the worker's options,
// because a workflow may decide only by its history.
type outcome struct {
	State    state     `json:"state"`
	Deadline time.Time `json:"deadline,omitzero"` // of stateWaiting; zero means none
	// Idle is how long the workflow stays open when it has nothing to do, and Turns is
	// the number of activities after which it continues as new.
	Idle  time.Duration `json:"idle,omitempty"`
	Turns int           `json:"turns,omitempty"`
}

// state is the state of a conversation after an activity.
type state string

const (
	stateDone    state = "done"
	stateWaiting state = "waiting"
	// statePutDown: the worker must stop, and another must take over immediately.
	statePutDown state = "put_down"
)

// conversation is the workflow. A conversation has one while it has something to do,
// and for a short time afterwards. The workflow holds nothing that is not in the log.
// Each iteration of the loop is one activity, which continues the conversation from its
// log, and then a wait: for a signal, for the earliest deadline, or for a while before
// the workflow ends. The reason for a wake-up has always been appended to the log
// before, so signals and updates carry no data, and several are equivalent to one.
func conversation(ctx workflow.Context, o order) error {
	e, err := listen(ctx)
	if err != nil {
		return err
	}
	defer func() { e.stands = closing }()
	for turns := 1; ; turns++ {
		drain(e.all...)
		out, err := e.carryOn(ctx, o)
		switch woken := drain(e.all...); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !woken:
			return err
		case err == nil && !woken && out.State != statePutDown && !e.rest(ctx, out):
			return ctx.Err()
		}
		if out.Turns > 0 && turns >= out.Turns || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, workflowName, o)
		}
	}
}

// ears are the channels on which a workflow receives signals and updates, and its
// stand, which decides how it answers updates.
type ears struct {
	cancel, all []workflow.ReceiveChannel
	stands      stand
}

type stand int

const (
	open    stand = iota // it is working, or waits for an answer
	idle                 // it has nothing to do
	closing              // it ends, or continues as new
)

// listen sets up the channels. The handlers of updates do not block, so that none is
// unfinished when the workflow ends.
func listen(ctx workflow.Context) (*ears, error) {
	look, stop := workflow.NewBufferedChannel(ctx, 1), workflow.NewBufferedChannel(ctx, 1)
	e := &ears{cancel: []workflow.ReceiveChannel{workflow.GetSignalChannel(ctx, cancelSignal), stop}}
	e.all = append([]workflow.ReceiveChannel{workflow.GetSignalChannel(ctx, wakeSignal), look}, e.cancel...)
	handle := func(name string, told workflow.Channel, last stand) error {
		return workflow.SetUpdateHandlerWithOptions(ctx, name, func(workflow.Context) error {
			told.SendAsync(nil) // one that is already buffered means the same
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(workflow.Context) error { return e.refuse(last) }})
	}
	if err := handle(lookUpdate, look, idle); err != nil {
		return nil, err
	}
	return e, handle(stopUpdate, stop, open)
}

// refuse returns an error if an update is not allowed; last is the highest stand that
// allows it.
func (e *ears) refuse(last stand) error {
	switch {
	case e.stands == closing:
		return temporal.NewApplicationError("the workflow is about to end", refusedClosing)
	case e.stands > last:
		return temporal.NewApplicationError("no turn is running", refusedIdle)
	}
	return nil
}

// carryOn runs one activity. A cancel that arrives meanwhile ends it, and the log must
// be read again whatever its outcome.
func (e *ears) carryOn(ctx workflow.Context, o order) (out outcome, err error) {
	e.stands = open
	scope, stop := workflow.WithCancel(ctx)
	turn := workflow.ExecuteActivity(scope, turnName, o)
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(turn, func(workflow.Future) {})
	cancelled := false
	for _, c := range e.cancel {
		selector.AddReceive(c, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			cancelled = true
			stop()
		})
	}
	for !turn.IsReady() {
		selector.Select(ctx)
	}
	if err = turn.Get(ctx, &out); cancelled {
		out.State, err = statePutDown, nil
	}
	return out, err
}

// rest waits until there may be something to do again. It returns false if nothing
// happened before the workflow must end, or if it was cancelled.
func (e *ears) rest(ctx workflow.Context, out outcome) (woken bool) {
	scope, stop := workflow.WithCancel(ctx)
	defer stop()
	over := false
	selector := workflow.NewSelector(ctx)
	for _, c := range e.all {
		selector.AddReceive(c, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); woken = true })
	}
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { over = true })
	switch {
	case out.State == stateDone:
		e.stands = idle
		selector.AddFuture(workflow.NewTimer(scope, out.Idle), func(workflow.Future) { over = true })
	case !out.Deadline.IsZero():
		selector.AddFuture(workflow.NewTimer(scope, until(ctx, out.Deadline)), func(workflow.Future) { woken = true })
	}
	for !woken && !over {
		selector.Select(ctx)
	}
	// A signal that arrived in the same step as the end of the wait counts.
	return (woken || drain(e.all...)) && ctx.Err() == nil
}

// until returns the time until a deadline, at least a second, because the clocks of
// workers differ and one may check too early.
func until(ctx workflow.Context, deadline time.Time) time.Duration {
	return max(deadline.Sub(workflow.Now(ctx)), time.Second)
}

// drain receives everything buffered, and reports whether there was anything.
func drain(channels ...workflow.ReceiveChannel) (any bool) {
	for _, c := range channels {
		for c.ReceiveAsync(nil) {
			any = true
		}
	}
	return any
}

// turnOptions returns the options of the activity. No decision of the workflow depends
// on them, so they may change while workflows run.
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

// workflowOf returns the workflow for a worker with these options.
func workflowOf(o *WorkerOptions) func(workflow.Context, order) error {
	return func(ctx workflow.Context, in order) error {
		return conversation(workflow.WithActivityOptions(ctx, turnOptions(o)), in)
	}
}
