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
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// progressBuffer is how many progress reports are buffered for a slow reader of the
// events; further ones are dropped.
const progressBuffer = 16

// batch runs the invocations of one message in parallel. Its methods run on the
// goroutine of the turn, except run and the methods that it calls.
type batch struct {
	turn      *turn
	opts      *Options        // of the conversation
	ctx       context.Context // of the calls, whose functions call back
	gate      gate
	clean     redaction.Func // for the goroutines of calls; a call is left behind if it hangs
	budget    allowance      // of the exchanges that the tools ask for
	calls     []call
	next      int // the first call that was not started
	running   int
	undecided int  // how many of those are not decided yet and may still be made
	alone     bool // an exclusive call is running
	finished  int
	recorded  int // without a log: how many results are in the history

	stuck   bool          // a call was left behind because a function of the program did not return
	closing bool          // the work has ended in a panic: nothing is yielded
	gone    chan struct{} // closed when outcomes are no longer received

	claims   chan *call
	claiming []*call // calls that wait for their intents
	progress chan *report
	done     chan *outcome
}

// call is one invocation on its way to a result.
type call struct {
	place      int // its index in the batch
	invocation canister.Invocation
	tool       *ensemble.Tool      // set when the call starts; nil if no tool has the name, and for one of the client
	client     *invoker.Definition // of the client's tool, or nil
	state      *calls.State        // its state in the history
	key        string              // the same for every attempt
	arguments  json.RawMessage     // set when the call is to be made
	intent     canister.Intent     // set with arguments
	claimed    chan claim          // receives whether the call may be made
	sampling   sampling            // what its tool asks the model
	questions  questions           // what its tool asks the person
	decided    bool                // it is decided whether the call is to be made
	stage      atomic.Int32        // how far its goroutine has come; a stage
	at         atomic.Value        // the function of the program that it is in, a string
	recorded   atomic.Bool         // its outcome is in the audit
	ended      bool                // complete has processed its outcome
	spent      calls.Sampled       // the exchanges that the tool asked for, set when it has returned
	result     *canister.Result    // nil until it is complete
	stored     bool                // the result is in the history, or this work adds none
	reported   bool                // its last event has been, or is being, yielded
}

// untried is the state of all calls that the history does not mention. Nothing writes to it.
var untried = &calls.State{}

// report is a progress report of a call.
type report struct {
	call     *call
	progress invoker.Progress
}

// outcome is what the goroutine of a call returns: a result, unless the call waits for
// an answer or for other calls, or was suspended for later work.
type outcome struct {
	call      *call
	wait      *canister.Wait
	requested []canister.Invocation
	postponed bool
	result    canister.Result
	duration  time.Duration   // 0 when the tool did not run
	approved  json.RawMessage // the arguments that replaced the model's, if any did
	by        string          // the person who approved it or stated its outcome, if it waited for that
	cause     string          // the cause of a failure, for people; see InvocationCompleted
}

// exclusive reports whether the tool asks to run alone.
func (c *call) exclusive() bool { return c.tool != nil && c.tool.Definition().Exclusive }

// invoke runs invocations until each has a result in the history or waits for an
// answer. With a log results enter as they arrive, so that a crash loses as little as
// possible; otherwise they enter in order, each as soon as the results before it are
// there.
func (t *turn) invoke(ctx context.Context, command Invoke) {
	ctx, settle, err := t.account.budgetTime(ctx, command.Pending)
	if err != nil {
		t.progress.fail(err)
		return
	}
	defer settle()
	if t.account.reached != nil {
		t.progress.limit(ReasonBudget)
	}
	b := newBatch(ctx, t, command)
	defer b.close()
	b.announce()
	b.collect()
	t.timedOut(ctx)
}

// newBatch returns the batch of the invocations of a command; ctx is the context of its calls.
func newBatch(ctx context.Context, t *turn, command Invoke) *batch {
	b := &batch{
		turn:     t,
		opts:     t.opts,
		ctx:      ctx,
		clean:    redaction.Func(redact.Trusted(ctx, t.opts.Redact)),
		gone:     make(chan struct{}),
		claims:   make(chan *call),
		progress: make(chan *report, progressBuffer),
		done:     make(chan *outcome, len(command.Pending)),
	}
	b.gate = gate{batch: b, opts: t.opts, before: slices.Clip(t.conv.history), refused: command.Refused}
	known := calls.Read(t.conv.history, t.conv.unmadeIntents, t.policy().Identity)
	b.calls = make([]call, len(command.Pending))
	for i, invocation := range command.Pending {
		b.calls[i] = call{
			place:      i,
			invocation: invocation,
			client:     t.tools.clientTool(invocation),
			state:      cmp.Or(known[invocation.ID], untried),
			key:        calls.Key(t.conv.givenID, invocation.ID),
			claimed:    make(chan claim, 1),
		}
	}
	state := t.state()
	b.budget = allowance{limits: t.opts.Limits, exchanges: state.exchanges, usage: state.usage}
	return b
}

// announce reports the waits that are over.
func (b *batch) announce() {
	for i := range b.calls {
		if c := &b.calls[i]; c.state.Wait.ID != "" {
			b.emit(WaitEnded{Wait: c.state.Wait, Answer: c.state.Answer})
		}
	}
}

// collect runs the batch until the last call has finished.
func (b *batch) collect() {
	suspended, ended, overdue := b.turn.piece.suspension.Done(), b.ctx.Done(), (<-chan time.Time)(nil)
	for {
		b.claimAll()
		if b.startMore(); b.finished == len(b.calls) {
			return
		}
		select {
		case c := <-b.claims:
			b.takeClaims(c)
		case r := <-b.progress:
			b.emitProgress(r)
		case o := <-b.done:
			b.complete(o)
		case <-ended:
			timer := time.NewTimer(foreign.Patience)
			defer timer.Stop()
			ended, overdue = nil, timer.C
		case <-overdue:
			overdue = nil
			b.leaveCalls()
		case <-suspended:
			suspended = nil // startMore starts no more calls
		}
	}
}

// close cancels and collects the calls that a panic, in the caller's loop or in a
// function of the program, would otherwise leave running, and saves the results that
// were not appended.
func (b *batch) close() {
	defer close(b.gone)
	defer func() {
		for i := range b.calls {
			if c := &b.calls[i]; !c.stored {
				b.turn.conv.owed = append(b.turn.conv.owed, *c.result)
			}
		}
	}()
	if b.finished < len(b.calls) {
		b.closing = true
		b.turn.cancel(errLeft)
		defer b.collect() // the rest, in case of another panic
		b.collect()
	}
}

// emit yields an event, unless the batch ends in a panic.
func (b *batch) emit(event Event) {
	if !b.closing {
		b.turn.emit(event)
	}
}

// startMore starts, in order, as many calls as may run now.
func (b *batch) startMore() {
	limit := b.opts.Limits.Parallel
	for b.next < len(b.calls) && !b.alone && (limit < 0 || b.running < limit) {
		c := &b.calls[b.next]
		c.tool = b.turn.tools.tool(c.invocation.Name) // the one that is on offer now
		if b.turn.suspended() {
			b.next++
			b.finished++
			c.stored = true
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
		b.undecided++
		if b.stuck {
			b.complete(b.leftBehind(c))
			continue
		}
		b.turn.guard.background.Run("the call of "+textcut.Bytes(c.invocation.Name, bounds.MaxQuoted), func() { b.start(c) })
	}
}

// complete processes the outcome of a call.
func (b *batch) complete(o *outcome) {
	if o.call.ended {
		return // it was left behind
	}
	o.call.ended = true
	b.running--
	b.finished++
	b.alone = false
	b.markDecided(o.call)
	if o.postponed || o.wait != nil || len(o.requested) > 0 {
		o.call.stored, o.call.reported = true, true
		if o.wait != nil {
			b.storeWait(*o.wait)
		}
		if len(o.requested) > 0 {
			b.storeRequested(o.call, o.requested)
		}
	} else {
		o.call.result = &o.result
	}
	b.storeResults(o.call)
	if b.drainProgress(); !o.call.reported {
		o.call.reported = true
		b.emit(InvocationCompleted{Invocation: o.call.invocation, Result: o.result, Duration: o.duration, Cause: o.cause})
	}
}

// storeWait adds a wait to the history.
func (b *batch) storeWait(wait canister.Wait) {
	if !b.turn.append(wait) {
		b.abort()
		return
	}
	b.emit(WaitStarted{Wait: b.turn.conv.history[len(b.turn.conv.history)-1].(canister.Wait)})
}

// storeResults adds the results that are due to the history.
func (b *batch) storeResults(done *call) {
	if b.opts.Log != nil {
		b.storeResult(done)
		return
	}
	for ; b.recorded < len(b.calls); b.recorded++ {
		c := &b.calls[b.recorded]
		if c.result == nil && !c.stored || !b.storeResult(c) {
			return
		}
	}
}

// storeResult adds the result of a call to the history, and reports whether the call is
// settled: its result is in the history, or it has none.
func (b *batch) storeResult(c *call) bool {
	if c.stored {
		return true
	}
	c.stored = b.turn.append(*c.result)
	if !c.stored {
		b.abort()
	}
	return c.stored
}

// abort cancels the work after an append failed. With a log, calls that were not made
// are left to other work, which may already be running them.
func (b *batch) abort() { b.turn.cancel(unwritten{b.turn.progress.err}) }

// unwritten is the cause of a cancellation by a failed log.
type unwritten struct{ error }

// postpones reports whether calls that were not made are left to other work.
func (b *batch) postpones() bool {
	_, lost := errors.AsType[unwritten](context.Cause(b.ctx))
	return lost && b.opts.Log != nil || b.turn.suspended()
}

// drainProgress yields the reports that arrived before a result.
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
func (b *batch) emitProgress(r *report) {
	if !r.call.reported {
		b.emit(InvocationProgressed{Invocation: r.call.invocation, Progress: r.progress})
	}
}

// report queues a progress report of a call; it may be called from any goroutine.
func (b *batch) report(c *call, p invoker.Progress) {
	select {
	case b.progress <- &report{c, p}:
	default:
	}
}
