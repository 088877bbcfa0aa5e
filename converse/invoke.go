// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
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
	clean    redaction           // for the goroutines of calls, which are left behind if it hangs
	before   []canister.Canister // the history when it began
	refused  bool
	budget   allowance // of the exchanges that the tools ask for
	calls    []call
	next     int // the first call that was not started
	running  int
	ruling   int  // of those, how many may still turn out to be made
	alone    bool // an exclusive call is running
	finished int
	recorded int // without a log: how many results are in the history

	stuck bool          // a call was left behind, since a function of the program did not return
	gone  chan struct{} // closed when nobody takes what the calls hand back

	claims   chan *call
	claiming []*call // wait for their intents
	progress chan report
	done     chan outcome
}

// call is one invocation on its way to a result.
type call struct {
	place      int // among those of the batch
	invocation canister.Invocation
	tool       *ensemble.Tool   // nil when there is none of that name
	standing   *standing        // what the history tells of it
	key        string           // what it carries on each attempt
	arguments  json.RawMessage  // that it is made with, when it is to be made
	intent     canister.Intent  // the same
	claimed    chan claim       // whether it may be
	ruled      bool             // it is known whether it is to be
	stage      atomic.Int32     // how far its goroutine has come; a stage
	at         atomic.Value     // the function of the program that this is in, a string
	recorded   atomic.Bool      // what came of it is in the audit
	ended      bool             // its outcome was taken in
	spent      sampled          // what the tool asked of the model, when it has returned
	result     *canister.Result // nil until it is complete
	kept       bool             // the result is in the history, or there will be none now
	over       bool             // its last event has been, or is being, yielded
}

// report is progress of a call.
type report struct {
	call     *call
	progress invoker.Progress
}

// outcome is what the goroutine of a call hands back: a result, unless the call
// waits for somebody or was put down for another work to carry on.
type outcome struct {
	call     *call
	wait     *canister.Wait
	put      bool
	result   canister.Result
	duration time.Duration   // 0 when the tool did not run
	approved json.RawMessage // arguments in place of the model's, if it ran with such
	by       string          // who approved it, or said what came of it, if it waited for that
	cause    string          // of a failure, for people; see InvocationCompleted
}

// exclusive reports whether the tool asks to run alone.
func (c *call) exclusive() bool { return c.tool != nil && c.tool.Definition().Exclusive }

// invoke runs invocations until each has a result in the history, or waits for
// somebody. With a log they enter as they come, so that as little as possible is
// lost in a crash, and otherwise in order, each as soon as those before it are
// there.
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
		clean:    redaction(redact.Trusted(ctx, t.opts.Redact)),
		before:   slices.Clip(t.history),
		refused:  command.Refused,
		gone:     make(chan struct{}),
		claims:   make(chan *call),
		progress: make(chan report, progressBuffer),
		done:     make(chan outcome, len(command.Pending)),
	}
	known := standings(t.history, t.unmadeIntents, t.policy().Identity)
	b.calls = make([]call, len(command.Pending))
	for i, invocation := range command.Pending {
		b.calls[i] = call{
			place:      i,
			invocation: invocation,
			tool:       t.tools.tool(invocation.Name),
			standing:   cmp.Or(known[invocation.ID], &standing{}),
			key:        keyOf(t.named, invocation.ID),
			claimed:    make(chan claim, 1),
		}
	}
	state := readTurn(t.history, t.opts.Limits)
	b.budget = allowance{limits: t.opts.Limits, exchanges: state.exchanges, usage: state.usage}
	defer b.close()
	b.announce()
	b.collect()
	t.timedOut(ctx)
}

// announce tells what waits are over.
func (b *batch) announce() {
	for i := range b.calls {
		if c := &b.calls[i]; c.standing.wait.ID != "" {
			b.emit(WaitEnded{Wait: c.standing.wait, Answer: c.standing.answer})
		}
	}
}

// collect sees the calls through to the last.
func (b *batch) collect() {
	suspended, ended, overdue := b.piece.suspended, b.ctx.Done(), (<-chan time.Time)(nil)
	for {
		b.claimAll()
		if b.startMore(); b.finished == len(b.calls) {
			return
		}
		select {
		case c := <-b.claims:
			b.take(c)
		case r := <-b.progress:
			b.emitProgress(r)
		case o := <-b.done:
			b.complete(o)
		case <-ended:
			timer := time.NewTimer(patience)
			defer timer.Stop()
			ended, overdue = nil, timer.C
		case <-overdue:
			overdue = nil
			b.leaveCalls()
		case <-suspended:
			suspended = nil // startMore starts none any more
		}
	}
}

// close ends and collects the calls that a panic, in the caller's loop or in a
// function of the program, would otherwise leave behind, and keeps the results that
// were not taken.
func (b *batch) close() {
	defer close(b.gone)
	defer func() {
		for i := range b.calls {
			if c := &b.calls[i]; !c.kept {
				b.owed = append(b.owed, *c.result)
			}
		}
	}()
	if b.finished < len(b.calls) {
		left := b.left || b.yielding
		b.left = true // nothing more is yielded
		defer func() { b.left = left }()
		b.cancel(errLeft)
		defer b.collect() // the rest, should there be one more panic
		b.collect()
	}
}

// startMore starts as many of the calls, in order, as may run now.
func (b *batch) startMore() {
	limit := b.opts.Limits.Parallel
	for b.next < len(b.calls) && !b.alone && (limit < 0 || b.running < limit) {
		c := &b.calls[b.next]
		if b.suspended() {
			b.next++
			b.finished++
			c.kept = true
			continue
		}
		if c.exclusive() {
			if b.running > 0 {
				return
			}
			b.alone = true
		}
		b.next++
		b.running++
		b.ruling++
		if b.stuck {
			b.complete(b.leftBehind(c))
			continue
		}
		b.background.run("the call of "+textcut.Bytes(c.invocation.Name, maxQuoted), func() { b.start(c) })
	}
}

// complete takes in a call that has its result, or will not have it now.
func (b *batch) complete(o outcome) {
	if o.call.ended {
		return // it was left behind
	}
	o.call.ended = true
	b.running--
	b.finished++
	b.alone = false
	b.rules(o.call)
	if o.put || o.wait != nil {
		o.call.kept, o.call.over = true, true
		if o.wait != nil {
			b.keepWait(*o.wait)
		}
	} else {
		o.call.result = &o.result
	}
	b.keepResults(o.call)
	if b.drainProgress(); !o.call.over {
		o.call.over = true
		b.emit(InvocationCompleted{Invocation: o.call.invocation, Result: o.result, Duration: o.duration, Cause: o.cause})
	}
}

// keepWait adds a wait to the history.
func (b *batch) keepWait(wait canister.Wait) {
	if !b.append(wait) {
		b.lose()
		return
	}
	b.emit(WaitStarted{Wait: b.history[len(b.history)-1].(canister.Wait)})
}

// keepResults adds the results that are due to the history.
func (b *batch) keepResults(done *call) {
	if b.opts.Log != nil {
		b.keepResult(done)
		return
	}
	for ; b.recorded < len(b.calls); b.recorded++ {
		c := &b.calls[b.recorded]
		if c.result == nil && !c.kept || !b.keepResult(c) {
			return
		}
	}
}

// keepResult adds the result of a call to the history, and reports whether it,
// or that there is none, is settled.
func (b *batch) keepResult(c *call) bool {
	if c.kept {
		return true
	}
	c.kept = b.append(*c.result)
	if !c.kept {
		b.lose()
	}
	return c.kept
}

// lose ends a work of which nothing can be written down any more. With a log, calls
// that were not made are for another work, which may be at them already.
func (b *batch) lose() { b.cancel(unwritten{b.err}) }

// unwritten is why a work was ended by its log or its journal.
type unwritten struct{ error }

// putDown reports whether calls that were not made are left to another work.
func (b *batch) putDown() bool {
	_, lost := errors.AsType[unwritten](context.Cause(b.ctx))
	return lost && b.opts.Log != nil || b.suspended()
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
