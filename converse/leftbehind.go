// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

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
