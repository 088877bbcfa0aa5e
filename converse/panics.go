// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// guardOptions wraps the functions of the options that return no error, so that their
// panics are named after them or do no harm.
func (c *Conversation) guardOptions() {
	newID, now := c.opts.NewID, c.opts.Now
	c.opts.NewID = func() string {
		defer foreign.RenamePanic("Options.NewID")
		id := newID()
		if id == "" {
			panic(&foreign.Misuse{Err: errors.New("converse: Options.NewID returned an empty ID")})
		}
		return id
	}
	c.opts.Now = func() time.Time {
		defer foreign.RenamePanic("Options.Now")
		return now()
	}
	c.opts.Redact = redact.Contained(c.opts.Redact, func(err error) {
		// Do not log its value: it may contain the text to be redacted.
		fields := []zap.Field{zap.String("function", "Options.Redact")}
		if panicked, ok := errors.AsType[*contain.Panic](err); ok {
			fields = append(fields, zap.ByteString("stack", panicked.Stack))
		}
		logevent.Log(context.Background(), c.opts.Logger, zap.ErrorLevel, "a text was withheld, because Options.Redact panicked", logevent.FunctionPanicked, fields...)
	})
}

// watched calls a function that only observes, such as an audit. A panic of it is
// logged and has no other effect.
func (g *guard) watched(ctx context.Context, what string, watch func()) {
	if err := contain.Call(what, watch); err != nil {
		g.logCrash(ctx, err)
	}
}

// logCrash logs a panic.
func (g *guard) logCrash(ctx context.Context, err error) {
	fields := []zap.Field{zap.String("cause", g.logged(err.Error()))}
	if panicked, ok := errors.AsType[*contain.Panic](err); ok {
		fields = append(fields, zap.ByteString("stack", panicked.Stack))
	}
	logevent.Log(ctx, g.log, zap.ErrorLevel, "a function of the program panicked", logevent.FunctionPanicked, fields...)
}

// contain turns a panic of do into the error of the work. A panic in the loop over the
// events belongs to the caller and passes.
func (t *turn) contain(do func()) {
	defer func() {
		if t.loop.inBody {
			return
		}
		if value := recover(); value != nil {
			err := foreign.Crashed("a function of the program", value)
			t.progress.fail(err)
			t.guard.logCrash(t.ctx, err)
		}
	}()
	do()
}

// deliver yields an event or an error to the caller's loop.
func (l *loop) deliver(event Event, err error) (more bool) {
	l.inBody = true // stays true if the loop panics
	more = l.yield(event, err)
	l.inBody = false
	return more
}

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

// leaveCalls leaves behind the calls that have not returned when patience has passed
// after the end of the work.
func (b *batch) leaveCalls() {
	b.stuck = true
	for i := range b.calls[:b.next] {
		if c := &b.calls[i]; !c.ended && !c.stored {
			b.complete(b.leftBehind(c))
		}
	}
}

// leftBehind returns the outcome of a call that has not returned. The call may have
// been made; if not, it no longer will, since the work is over.
func (b *batch) leftBehind(c *call) *outcome {
	if i := slices.Index(b.claiming, c); i >= 0 { // it waits only for its claim
		b.claiming = slices.Delete(b.claiming, i, i+1)
		c.claimed <- claimPostponed
	}
	what, _ := c.at.Load().(string)
	err := &foreign.LeftError{What: cmp.Or(what, "a function of the program") + " in the call of " + textcut.Bytes(c.invocation.Name, bounds.MaxQuoted)}
	b.turn.guard.leave(b.ctx, err)
	unmade := c.stage.CompareAndSwap(stageUnmade, stageLeft)
	if b.turn.cutOff() || unmade && b.postpones() { // other work may make it
		return &outcome{call: c, postponed: true}
	}
	return b.failed(c, invoker.OutcomeUnknown, "got no answer from one of its functions", err, calls.Sampled{})
}

// failed returns the outcome of a call that ended because of the program. Its text says
// whether the call may have taken effect.
func (b *batch) failed(c *call, code invoker.Code, how string, cause error, spent calls.Sampled) *outcome {
	failure := &invoker.Failure{Code: code, Cause: cause}
	switch c.stage.Load() {
	case stageUnmade, stageLeft:
		failure.Code = invoker.Internal
		failure.Message = fmt.Sprintf("The call was not started: the program that makes the calls %s. The reason is in its log.", how)
	case stageMade:
		failure.Message = fmt.Sprintf("The program that makes the calls %s during the call, which may or may not have taken effect. The reason is in its log.", how)
	case stageReturned:
		failure.Message = fmt.Sprintf("The tool has returned, and the program that takes its result %s. The call may or may not have taken effect. The reason is in the program's log.", how)
	}
	if stage := c.stage.Load(); (c.state.InDoubt() || len(c.state.Made) > 0) && (stage == stageUnmade || stage == stageLeft) {
		failure = c.state.Barred(invoker.Internal, "the program that makes the calls "+how)
	}
	o := &outcome{call: c, result: canister.Result{
		Parent:     c.invocation.Parent,
		Head:       b.anyHead(),
		Invocation: c.invocation.ID,
		Code:       string(failure.Code),
		Content:    canister.Texts(failure.Message),
	}}
	o.result.Metadata = spent.Remember(nil)
	recorded, _ := b.turn.guard.background.Run("Options.Audit", func() { b.turn.auditor.record(b.ctx, o, failure) })
	select {
	case <-recorded:
	case <-time.After(time.Second): // Options.Audit may hang too
	}
	return o
}

// anyHead returns a head even if Options.NewID or Options.Now fails.
func (b *batch) anyHead() (head canister.Head) {
	head = canister.Head{ID: rand.Text(), Time: time.Now()}
	_ = contain.Call("", func() { head = canister.Head{ID: b.opts.NewID(), Time: b.opts.Now()} })
	return head
}

// The stages of a call.
const (
	stageUnmade   = int32(iota) // not made
	stageLeft                   // not made, and will not be
	stageMade                   // made
	stageReturned               // the tool has returned
)
