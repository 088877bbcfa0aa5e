// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// run brings one call to its result, on a goroutine of its own.
func (b *batch) run(c *call) outcome {
	o := outcome{call: c}
	arguments, failure := b.prepare(c)
	var decision Decision
	if failure == nil {
		decision, failure = b.decide(c, arguments)
	}
	if failure != nil {
		o.result = b.result(c, invoker.Output{}, failure)
		b.recordUnstarted(o, failure)
		return o
	}
	if decision.changed {
		arguments, o.approved = decision.arguments, decision.arguments
	}
	b.started <- c
	ctx, span := b.startTool(b.ctx, c, arguments)
	began := b.opts.Now()
	output, spent, failure := b.call(ctx, c, arguments)
	o.duration = b.since(began)
	o.result = b.result(c, output, failure)
	o.result.Metadata = spent.remember(o.result.Metadata)
	b.endTool(span, &o.result, failure)
	if decision.changed {
		o.result = b.withChangedArguments(o.result, arguments)
	}
	b.record(ctx, o, failure)
	return o
}

// call runs the tool, and returns also what it has spent of the model.
func (b *batch) call(ctx context.Context, c *call, arguments json.RawMessage) (invoker.Output, sampled, *invoker.Failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asking := &sampling{batch: b, ctx: ctx}
	output, err := c.tool.Invoke(ctx, &invoker.Call{
		ID:        c.invocation.ID,
		Arguments: arguments,
		Progress:  func(p invoker.Progress) { b.report(c, b.progressOf(p)) },
		Person:    b.person(ctx, c),
		Model:     asking.ask,
		Log:       func(entry invoker.LogEntry) { b.logEntry(ctx, c, entry) },
	})
	return output, asking.end(), b.interrupted(c, invoker.AsFailure(err))
}

// progressOf is a report as it may be shown.
func (b *batch) progressOf(p invoker.Progress) invoker.Progress {
	p = b.clean.progress(p)
	p.Partial = bound(p.Partial, b.opts.Limits.ResultBytes, spiller{})
	return p
}

// prepare finds out whether the call can be made at all.
func (b *batch) prepare(c *call) (json.RawMessage, *invoker.Failure) {
	text := strings.TrimSpace(c.invocation.Arguments)
	switch {
	case b.ctx.Err() != nil:
		return nil, invoker.Failf(invoker.Canceled, "%s", b.unstarted(b.whyOver()))
	case b.refused:
		return nil, invoker.Failf(invoker.Denied, "The call was not started: no further tool calls are allowed in this turn.")
	case b.bill.reached != nil:
		return nil, invoker.Failf(invoker.Denied, "The call was not started: %v.", b.bill.reached)
	case c.tool == nil:
		return nil, b.tools.missing(c.invocation.Name)
	case text == "":
		return json.RawMessage("{}"), nil
	}
	arguments := json.RawMessage(text)
	if !json.Valid(arguments) {
		return nil, invoker.Failf(invoker.InvalidArguments,
			"The arguments are not valid JSON, so the tool was not called: %v. Send one JSON object.", json.Unmarshal(arguments, new(any)))
	}
	return arguments, nil
}

// decide asks for approval, and returns a failure if there is none.
func (b *batch) decide(c *call, arguments json.RawMessage) (Decision, *invoker.Failure) {
	if b.opts.Approve == nil {
		return Allow(), nil
	}
	decision, err := b.askApproval(Approval{
		Invocation: c.invocation,
		Ensemble:   c.tool.Ensemble().Name(),
		Tool:       c.tool.Definition().Name,
		Definition: c.tool.Definition(),
		Arguments:  arguments,
	})
	switch {
	case err != nil && b.ctx.Err() != nil:
		return decision, invoker.Failf(invoker.Canceled, "The call was not started: %s while it waited for approval.", b.whyOver())
	case err != nil:
		event.Log(b.ctx, b.log, zapcore.ErrorLevel, "approval failed", event.ApprovalFailed, zap.String("tool", c.invocation.Name), zap.Error(err))
		return decision, invoker.Failf(invoker.Denied, "The call was not started: it needs an approval, and no decision was reached.")
	case decision.denied:
		return decision, invoker.Failf(invoker.Denied, "The call was denied and not started: %s", decision.reason)
	case decision.changed && !isObject(decision.arguments):
		event.Log(b.ctx, b.log, zapcore.ErrorLevel, "approval changed the arguments into something that is not a JSON object", event.ApprovalFailed, zap.String("tool", c.invocation.Name))
		return decision, invoker.Failf(invoker.Internal, "The call was not started: its approval failed.")
	}
	return decision, nil
}

// isObject reports whether text is one JSON object.
func isObject(text json.RawMessage) bool {
	return json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

// askApproval calls the embedder's function, which may panic, and does not
// wait for it longer than the turn lasts.
func (b *batch) askApproval(ask Approval) (Decision, error) {
	type answer struct {
		Decision
		error
	}
	answers := make(chan answer, 1)
	b.strays.Go(func() {
		reached := answer{error: errors.New("the approval function did not return")}
		defer func() {
			if value := recover(); value != nil {
				reached = answer{error: fmt.Errorf("the approval function panicked: %v", value)}
			}
			answers <- reached
		}()
		decision, err := b.opts.Approve(b.ctx, ask)
		reached = answer{decision, err}
	})
	select {
	case reached := <-answers:
		return reached.Decision, reached.error
	case <-b.ctx.Done():
		return Decision{}, context.Cause(b.ctx)
	}
}

// interrupted tells the truth about a call that ended because the turn did.
func (b *batch) interrupted(c *call, failure *invoker.Failure) *invoker.Failure {
	if failure == nil || b.ctx.Err() == nil {
		return failure
	}
	switch failure.Code {
	case invoker.Canceled, invoker.Timeout:
	default:
		return failure
	}
	effect := "It may or may not have taken effect."
	if c.tool.Definition().Hints.ReadOnly {
		effect = "The tool changes nothing, so it can be called again."
	}
	return &invoker.Failure{
		Code:    invoker.Canceled,
		Message: fmt.Sprintf("The call was interrupted: %s. %s", b.whyOver(), effect),
		Content: nil,
		Cause:   failure,
	}
}

// whyOver says in a clause why the context of the work has ended.
func (b *batch) whyOver() string {
	if b.turn.ctx.Err() == nil && errors.Is(context.Cause(b.ctx), errTimeLimit) {
		return fmt.Sprintf("the turn reached its time limit of %v", b.opts.Limits.Time)
	}
	if reached := new(budget.ReachedError); errors.As(context.Cause(b.ctx), &reached) {
		return reached.Error()
	}
	return "the turn was cancelled"
}

// result makes the canister of a call from its output or its failure.
func (b *batch) result(c *call, output invoker.Output, failure *invoker.Failure) canister.Result {
	result := canister.Result{Invocation: c.invocation.ID}
	result.Content, result.Metadata = output.Content, output.Metadata
	if failure != nil {
		result.Code, result.Retryable = string(failure.Code), failure.Retryable
		result.Content, result.Metadata = failure.Content, failure.Metadata
		if len(result.Content) == 0 {
			result.Content = canister.Texts(failure.Message)
		}
	}
	spill := spiller{b.ctx, b.opts.Spill, b.log}
	result.Content = bound(b.clean.contents(byValue(result.Content)), b.opts.Limits.ResultBytes, spill)
	result.Metadata = b.clean.fields(result.Metadata)
	result.ID, result.Time = b.opts.NewID(), b.opts.Now()
	return result
}

// withChangedArguments puts before the result that its call was made with
// arguments that the model did not choose.
func (b *batch) withChangedArguments(result canister.Result, arguments json.RawMessage) canister.Result {
	note := fmt.Sprintf("[The call was approved with changed arguments: %s]", arguments)
	result.Content = append(b.clean.contents(canister.Texts(note)), result.Content...)
	return result
}
