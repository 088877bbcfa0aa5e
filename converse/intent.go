// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/elsewhere"
)

// claim says whether a call may be made.
type claim int

const (
	claimGo        claim = iota // its intent is appended
	claimOver                   // the work has ended
	claimPostponed              // it is left to other work
)

// intentOf returns the intent that is appended before a call is made.
func (g *gate) intentOf(c *call, r callDecision) canister.Intent {
	if len(c.state.Made) > 0 {
		return c.state.Intent // it goes on
	}
	intent := canister.Intent{
		Invocation: c.invocation.ID,
		Attempt:    c.state.Attempts + 1,
		Key:        c.key,
		Repeatable: c.tool.Repeatable(),
		Wait:       r.wait,
	}
	if r.changed {
		intent.Arguments = g.written(r)
	}
	if r.approved.IsZero() {
		return intent
	}
	intent.Approved, intent.Fingerprint = r.approved, fingerprintOf(c)
	if identity, err := g.batch.turn.identity(); err == nil { // without an identity the approval holds for none
		intent.Identity = identity
	}
	return intent
}

// written returns the changed arguments of a call as they appear in its intent. Secrets
// are removed, and then the text is no longer a JSON object; an answer in the log has
// the arguments anyway.
func (g *gate) written(r callDecision) string {
	text := string(r.arguments)
	if cleaned := g.batch.clean.JSON(r.arguments); r.wait == "" && cleaned != text {
		return "[incomplete] " + cleaned
	}
	return text
}

// markDecided records that it is decided whether a call is to be made.
func (b *batch) markDecided(c *call) {
	if !c.decided {
		c.decided = true
		b.undecided--
	}
}

// takeClaims receives the calls that are to be made.
func (b *batch) takeClaims(c *call) {
	for more := true; more; {
		b.claiming = append(b.claiming, c)
		b.markDecided(c)
		select {
		case c = <-b.claims:
		default:
			more = false
		}
	}
}

// claimAll claims the calls that are to be made. Calls that were started together are
// claimed together, unless one of them may wait for an approval.
func (b *batch) claimAll() {
	if len(b.claiming) > 0 && (b.undecided == 0 || b.opts.Approve != nil) {
		b.claim()
	}
}

// claim appends the intents of the calls that are to be made, in one append. If another
// process has carried on the conversation, none of them is made.
func (b *batch) claim() {
	calls, may := b.claiming, claimPostponed
	b.claiming = nil
	slices.SortFunc(calls, func(a, b *call) int { return a.place - b.place })
	func() {
		defer func() { // even if the log panics
			for _, c := range calls {
				c.claimed <- may
			}
		}()
		may = b.mayMake(calls)
	}()
	if may == claimGo {
		for _, c := range calls {
			if len(c.state.Made) == 0 {
				b.emit(InvocationStarted{Invocation: c.invocation})
			}
		}
	}
}

func (b *batch) mayMake(calls []*call) claim {
	switch {
	case b.postpones():
		return claimPostponed
	case b.ctx.Err() != nil:
		return claimOver
	}
	var intents []canister.Canister
	entering := map[string]bool{}
	for _, c := range calls {
		if len(c.state.Made) == 0 && (b.opts.Log != nil || c.intent.Wait != "" || c.intent.Attempt > 1) {
			intent, err := b.turn.recorder.headed(c.intent, entering)
			if err != nil {
				b.turn.progress.fail(err)
				b.abort()
				return claimPostponed
			}
			c.intent = intent.(canister.Intent)
			b.turn.conv.unmadeIntents[c.intent.ID] = true // until the log has accepted it
			intents = append(intents, c.intent)
		}
		elsewhere.Begin(b.ctx, b.opts.ID, c.intent.ID)
	}
	if len(intents) > 0 && !b.turn.append(intents...) {
		b.abort()
		return claimPostponed
	}
	for _, intent := range intents {
		delete(b.turn.conv.unmadeIntents, intent.Header().ID)
	}
	return claimGo
}
