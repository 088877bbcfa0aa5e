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
	cancelSignal = "cancel" // the same, and what is under way is not wanted any more
	lookUpdate   = "look"   // as wakeSignal, for who waits until a worker has taken note
	stopUpdate   = "stop"   // as cancelSignal; refused if nothing is under way
)

// Why an update is refused: the types of the errors.
const (
	refusedIdle    = "idle"    // there is nothing to stop
	refusedClosing = "closing" // the workflow is about to end, and looks no more
)

// order is what the workflow and its activity are asked: to carry a conversation
// on from its log, until it is done or waits.
type order struct {
	Conversation string `json:"conversation"`
}

// outcome is what an activity came to. What the options of a worker say comes
// with it too, since a workflow may decide by nothing but its history.
type outcome struct {
	State    state     `json:"state"`
	Deadline time.Time `json:"deadline,omitzero"` // of stateWaiting; zero is none
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
// a signal or an update carries nothing, and many are as good as one.
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

// ears are what a workflow hears, by signals and by updates alike, and where it
// stands, which decides what it can say of an update.
type ears struct {
	cancel, all []workflow.ReceiveChannel
	stands      stand
}

type stand int

const (
	open    stand = iota // it is at work, or waits for somebody
	idle                 // it has nothing to do
	closing              // it ends, or begins anew
)

// listen begins to hear. The handlers of updates do not wait, so that none is
// unfinished when the workflow ends.
func listen(ctx workflow.Context) (*ears, error) {
	look, stop := workflow.NewBufferedChannel(ctx, 1), workflow.NewBufferedChannel(ctx, 1)
	e := &ears{cancel: []workflow.ReceiveChannel{workflow.GetSignalChannel(ctx, cancelSignal), stop}}
	e.all = append([]workflow.ReceiveChannel{workflow.GetSignalChannel(ctx, wakeSignal), look}, e.cancel...)
	handle := func(name string, told workflow.Channel, last stand) error {
		return workflow.SetUpdateHandlerWithOptions(ctx, name, func(workflow.Context) error {
			told.SendAsync(nil) // if there is one already, that says the same
			return nil
		}, workflow.UpdateHandlerOptions{Validator: func(workflow.Context) error { return e.refuse(last) }})
	}
	if err := handle(lookUpdate, look, idle); err != nil {
		return nil, err
	}
	return e, handle(stopUpdate, stop, open)
}

// refuse says why an update is not taken that is for workflows up to a stand.
func (e *ears) refuse(last stand) error {
	switch {
	case e.stands == closing:
		return temporal.NewApplicationError("the workflow is about to end", refusedClosing)
	case e.stands > last:
		return temporal.NewApplicationError("nothing is under way", refusedIdle)
	}
	return nil
}

// carryOn runs one activity. A cancel that comes meanwhile ends it, and whatever
// it came to, the log is to be looked at again.
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

// rest waits until there may be something to do again, and returns false when
// nothing came for as long as the workflow may stay, or it was cancelled.
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
	// What came at the same step as the end of the while was heard, and counts.
	return (woken || drain(e.all...)) && ctx.Err() == nil
}

// until is how long a deadline is away. The clocks of workers differ: one that
// looks too early asks for a little more.
func until(ctx workflow.Context, deadline time.Time) time.Duration {
	return max(deadline.Sub(workflow.Now(ctx)), time.Second)
}

// drain takes what has come so far, and reports whether there was anything.
func drain(channels ...workflow.ReceiveChannel) (any bool) {
	for _, c := range channels {
		for c.ReceiveAsync(nil) {
			any = true
		}
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
