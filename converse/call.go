// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/inner"
	"github.com/consort-go/consort/converse/internal/spilling"
	"github.com/consort-go/consort/converse/internal/toolspans"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// start runs a call to its outcome on its own goroutine. A panic of the program's code
// becomes its result.
func (b *batch) start(c *call) {
	var o *outcome
	returned := false
	defer func() {
		if !returned {
			o = b.crashed(c, recover())
		}
		b.done <- o
	}()
	o = b.run(c)
	returned = true
}

// crashed returns the outcome of a call during which a function of the program
// panicked.
func (b *batch) crashed(c *call, value any) *outcome {
	err := foreign.Crashed("a function of the program", value)
	b.turn.guard.logCrash(b.ctx, err)
	if b.postpones() && c.stage.Load() == stageUnmade { // other work may make it
		return &outcome{call: c, postponed: true}
	}
	return b.failed(c, invoker.Internal, "failed", err, c.spent)
}

// run takes one call to its outcome on its own goroutine.
func (b *batch) run(c *call) *outcome {
	o, mayMake := c.decide(b)
	if mayMake {
		b.make(c, o)
	}
	return o
}

// decide decides whether a call is made, and records its intent. The outcome is complete if
// the call is not made. It returns before the call is made, so that calls that run for a long
// time have a small stack.
func (c *call) decide(b *batch) (o *outcome, mayMake bool) {
	r := b.gate.decide(c)
	o = &outcome{call: c, by: r.by}
	switch {
	case r.postponed || r.failure != nil && r.failure.Code == invoker.Canceled && b.postpones():
		o.postponed = true
		return o, false
	case r.awaits != nil:
		o.wait = r.awaits
		return o, false
	case r.failure != nil || r.done:
		b.unmade(o, invoker.Output{Content: r.content}, r.failure)
		return o, false
	}
	c.arguments, c.intent = r.arguments, b.gate.intentOf(c, r)
	select {
	case b.claims <- c:
	case <-b.gone:
		o.postponed = true
		return o, false
	}
	switch <-c.claimed {
	case claimPostponed:
		o.postponed = true
		return o, false
	case claimOver:
		b.unmade(o, invoker.Output{}, b.turn.abandoned(c.state, invoker.Canceled, b.whyOver()))
		return o, false
	}
	if r.changed {
		o.approved = r.arguments
	}
	return o, true
}

// unmade completes the outcome of a call that this work does not make.
func (b *batch) unmade(o *outcome, output invoker.Output, failure *invoker.Failure) {
	o.result = b.result(o.call, output, failure)
	b.turn.auditor.recordUnstarted(b.ctx, o, failure)
}

// make makes a call and completes its outcome.
func (b *batch) make(c *call, o *outcome) {
	ctx, span := b.turn.auditor.startTool(b.ctx, c, c.arguments)
	began := b.opts.Now()
	if !c.stage.CompareAndSwap(stageUnmade, stageMade) { // it was left behind as not made
		toolspans.End(span, &o.result, nil)
		o.postponed = true
		return
	}
	done := b.call(ctx, c)
	c.spent = done.spent
	c.stage.Store(stageReturned)
	o.finish(ctx, b, span, began, done)
}

// finish completes the outcome of a call that has done.
func (o *outcome) finish(ctx context.Context, b *batch, span *telemetry.Tool, began time.Time, done completion) {
	c, failure := o.call, done.failure
	if len(done.calls) > 0 {
		if failure = b.requests(c, o, done); failure == nil {
			b.turn.auditor.spans.Keep(c.invocation.ID, span)
			return
		}
	}
	o.duration = b.opts.since(began)
	if len(c.state.Made) > 0 {
		o.duration = b.gate.elapsed(c)
	}
	o.result, o.cause = b.result(c, done.output, failure), b.turn.guard.causeOf(failure)
	o.result.Metadata = done.spent.Remember(o.result.Metadata)
	toolspans.End(span, &o.result, failure)
	switch {
	case failure != nil && done.later != nil:
		o.wait = done.later
		o.wait.Metadata = done.spent.Remember(nil)
		return
	case failure != nil && b.cut(failure):
		o.postponed = true
		return
	}
	if failure == nil && o.result.Code != "" { // it cannot be stored
		failure = invoker.Failf(invoker.Code(o.result.Code), "%s", canister.TextOf(o.result.Content))
	}
	b.turn.auditor.record(ctx, o, failure)
}

// cut reports whether the suspension of the work ended a call, so that its outcome is
// unknown.
func (b *batch) cut(failure *invoker.Failure) bool {
	switch failure.Code {
	case invoker.Canceled, invoker.Timeout, invoker.OutcomeUnknown:
		return b.turn.cutOff()
	}
	return false
}

// completion has the output or the failure of a call, and its requests to the model, to a
// person and to other tools.
type completion struct {
	output  invoker.Output
	spent   calls.Sampled
	later   *canister.Wait        // the wait for the answer of a person, or nil
	calls   []canister.Invocation // of other tools
	failure *invoker.Failure
}

// call runs the tool.
func (b *batch) call(ctx context.Context, c *call) completion {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asks, requested := c.request(ctx, cancel, b)
	tool := c.tool
	if wasApproved(c.intent) || b.opts.Forbid != nil { // only of this server, whatever replaces it
		tool = tool.Bound()
	}
	output, err := tool.Invoke(ctx, asks)
	return completion{output, c.sampling.end(), c.questions.end(), requested.End(), b.interrupted(c, invoker.AsFailure(contain.Error(err)))}
}

// request returns the call for the tool, and the recorder of the calls of other tools that
// it requests; nil if it may not call any. cancel ends ctx, the context of the call.
func (c *call) request(ctx context.Context, cancel context.CancelCauseFunc, b *batch) (*invoker.Call, *inner.Requested) {
	c.sampling.begin(ctx, b, c.key)
	asking := &c.questions
	asking.batch, asking.opts, asking.call, asking.ctx, asking.giveUp, asking.counts = b, b.opts, c, ctx, cancel, map[string]int{}
	asks := &invoker.Call{
		ID:         c.key,
		Arguments:  c.arguments,
		Progress:   func(p invoker.Progress) { b.report(c, b.progressOf(p)) },
		Person:     asking.person(),
		Model:      c.sampling.ask,
		ModelTools: true,
		Log:        func(entry invoker.LogEntry) { b.logEntry(ctx, c, entry) },
	}
	if !c.mayCallTools() {
		return asks, nil
	}
	requested := inner.New(c.invocation, c.state, b.turn.tools.withoutClient())
	asks.Tools = requested
	return asks, requested
}

// progressOf returns a progress report that is redacted and within the limits.
func (b *batch) progressOf(p invoker.Progress) invoker.Progress {
	p = b.clean.Progress(p)
	p.Partial, _ = bounds.Writable(slices.Clone(p.Partial), nil)
	p.Partial, _ = bounds.Metadata(bounds.Contents(p.Partial, b.opts.Limits.ResultBytes, nil), nil, b.opts.Limits.ResultBytes, nil)
	return p
}

// prepare returns the arguments of a call, or the failure if it cannot be made.
func (g *gate) prepare(c *call) (json.RawMessage, *invoker.Failure) {
	text := strings.TrimSpace(c.invocation.Arguments)
	switch {
	case g.batch.ctx.Err() != nil:
		return nil, g.batch.turn.abandoned(c.state, invoker.Canceled, g.batch.whyOver())
	case g.refused:
		return nil, g.batch.turn.abandoned(c.state, invoker.Denied, "no further tool calls are allowed in this turn")
	case g.batch.turn.account.reached != nil:
		return nil, g.batch.turn.abandoned(c.state, invoker.Denied, g.batch.turn.account.reached.Error())
	case c.tool == nil && c.client == nil:
		return nil, g.batch.turn.tools.missing(c.invocation.Name)
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

// interrupted replaces the failure of a call that ended because the turn did.
func (b *batch) interrupted(c *call, failure *invoker.Failure) *invoker.Failure {
	switch {
	case failure == nil || b.ctx.Err() == nil, failure.Code != invoker.Canceled && failure.Code != invoker.Timeout:
		return inner.Ended(c.state, failure)
	case len(c.state.Made) > 0:
		return inner.Stopped(c.state, invoker.Canceled, b.whyOver(), failure)
	}
	effect := "It may or may not have taken effect."
	if c.tool.ReadOnly() {
		effect = "The tool changes nothing, so it can be called again."
	}
	return &invoker.Failure{
		Code:    invoker.Canceled,
		Message: fmt.Sprintf("The call was interrupted: %s. %s", b.whyOver(), effect),
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

// result builds the result of a call from its output or its failure.
func (b *batch) result(c *call, output invoker.Output, failure *invoker.Failure) canister.Result {
	result := canister.Result{Invocation: c.invocation.ID, Parent: c.invocation.Parent}
	result.Content, result.Metadata = output.Content, output.Metadata
	if failure != nil {
		result.Code, result.Retryable = string(failure.Code), failure.Retryable
		result.Content, result.Metadata = failure.Content, failure.Metadata
		if len(result.Content) == 0 {
			result.Content = canister.Texts(failure.Message)
		}
	}
	c.at.Store("Options.Redact")
	var spill bounds.Keep
	if b.opts.Spill != nil {
		spill = spilling.Spiller{
			Context: b.ctx, Conversation: b.opts.ID, Spill: b.opts.Spill, Logger: b.turn.guard.log,
			Begins: func() { c.at.Store("Options.Spill") },
		}.Keep
	}
	note, limit := b.changeOf(c)
	content, metadata := bounds.Writable(b.clean.Contents(bounds.ByValue(result.Content)), b.clean.Fields(result.Metadata))
	content, metadata = bounds.Metadata(bounds.Contents(content, limit, spill), metadata, limit, spill)
	result.Content, result.Metadata = append(note, content...), metadata // a copy: the tool may keep its slice
	result.ID, result.Time = b.opts.NewID(), b.opts.Now()
	return bounds.Stored(result, b.opts.Log != nil)
}

// changeOf returns a note, placed before the result of a call, that the call was made
// with arguments that the model did not choose. It uses at most a quarter of the limit
// of a result, and changeOf returns the rest of the limit.
func (b *batch) changeOf(c *call) ([]canister.Content, int) {
	limit := b.opts.Limits.ResultBytes
	if c.intent.Arguments == "" {
		return nil, limit
	}
	note := b.clean.Contents(canister.Texts(fmt.Sprintf("[The call was approved with changed arguments: %s]", c.arguments)))
	if limit < 0 {
		return note, limit
	}
	note = bounds.Contents(note, limit/4, nil)
	for _, piece := range note {
		limit -= bounds.Size(piece)
	}
	return note, max(0, limit)
}
