// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// progressBuffer is how many progress reports wait for a slow reader of the
// events; further ones are dropped.
const progressBuffer = 16

// batch runs the invocations of one message side by side. Its methods run on
// the goroutine of the turn, but for run and what it calls.
type batch struct {
	*turn
	ctx      context.Context
	refused  bool
	budget   allowance // of the exchanges that the tools ask for
	calls    []call
	next     int // the first call that was not started
	running  int
	alone    bool // an exclusive call is running
	finished int
	recorded int // how many results are in the history

	started  chan *call
	progress chan report
	done     chan outcome
}

// call is one invocation on its way to a result.
type call struct {
	invocation canister.Invocation
	tool       *ensemble.Tool   // nil when there is none of that name
	result     *canister.Result // nil until it is complete
	over       bool             // its last event has been, or is being, yielded
}

// report is progress of a call.
type report struct {
	call     *call
	progress invoker.Progress
}

// outcome is what the goroutine of a call hands back.
type outcome struct {
	call     *call
	result   canister.Result
	duration time.Duration   // 0 when the tool did not run
	approved json.RawMessage // arguments in place of the model's, if it ran with such
}

// exclusive reports whether the tool asks to run alone.
func (c *call) exclusive() bool { return c.tool != nil && c.tool.Definition().Exclusive }

// invoke runs invocations and adds their results to the history, in order,
// each as soon as those before it are there. It returns when all have one.
func (t *turn) invoke(ctx context.Context, command Invoke) {
	ctx, settle, err := t.budgetTime(ctx, command.Pending)
	if err != nil {
		t.fail(err)
		return
	}
	defer settle()
	b := &batch{
		turn:     t,
		ctx:      ctx,
		refused:  command.Refused,
		started:  make(chan *call),
		progress: make(chan report, progressBuffer),
		done:     make(chan outcome, len(command.Pending)),
	}
	b.calls = make([]call, len(command.Pending))
	for i, invocation := range command.Pending {
		b.calls[i] = call{invocation: invocation, tool: t.tools.tool(invocation.Name)}
	}
	state := readTurn(t.history, t.opts.Limits)
	b.budget = allowance{limits: t.opts.Limits, exchanges: state.exchanges, usage: state.usage}
	defer b.close()
	b.collect()
	t.timedOut(ctx)
}

// collect sees the calls through to the last.
func (b *batch) collect() {
	for b.finished < len(b.calls) {
		b.startMore()
		select {
		case c := <-b.started:
			b.emit(InvocationStarted{Invocation: c.invocation})
		case r := <-b.progress:
			b.emitProgress(r)
		case o := <-b.done:
			b.complete(o)
		}
	}
}

// close ends and collects the calls that a panic, in the caller's loop or in
// the journal, would otherwise leave behind, and keeps the results that the
// journal did not take.
func (b *batch) close() {
	defer func() {
		for _, c := range b.calls[b.recorded:] {
			b.owed = append(b.owed, *c.result)
		}
	}()
	if b.finished < len(b.calls) {
		b.left = true
		b.cancel(errLeft)
		defer b.collect() // the rest, should the journal panic once more
		b.collect()
	}
}

// startMore starts as many of the calls, in order, as may run now.
func (b *batch) startMore() {
	limit := b.opts.Limits.Parallel
	for b.next < len(b.calls) && !b.alone && (limit < 0 || b.running < limit) {
		c := &b.calls[b.next]
		if c.exclusive() {
			if b.running > 0 {
				return
			}
			b.alone = true
		}
		b.next++
		b.running++
		go func() {
			b.done <- b.run(c)
		}()
	}
}

// complete takes in a call that has its result.
func (b *batch) complete(o outcome) {
	b.running--
	b.finished++
	b.alone = false
	o.call.result = &o.result
	for b.recorded < len(b.calls) && b.calls[b.recorded].result != nil {
		if !b.append(*b.calls[b.recorded].result) {
			b.cancel(b.err) // the rest cannot be written down: end it
			break
		}
		b.recorded++
	}
	b.drainProgress()
	o.call.over = true
	b.emit(InvocationCompleted{Invocation: o.call.invocation, Result: o.result, Duration: o.duration})
}

// drainProgress yields the reports that came before a result.
func (b *batch) drainProgress() {
	for {
		select {
		case r := <-b.progress:
			b.emitProgress(r)
		default:
			return
		}
	}
}

// emitProgress yields a report, unless it comes after the result.
func (b *batch) emitProgress(r report) {
	if !r.call.over {
		b.emit(InvocationProgressed{Invocation: r.call.invocation, Progress: r.progress})
	}
}

// report takes in the progress of a call; it is called from any goroutine.
func (b *batch) report(c *call, p invoker.Progress) {
	select {
	case b.progress <- report{c, p}:
	default:
	}
}
