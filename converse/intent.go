// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/canister"
)

// claim says whether a call that is to be made may be made.
type claim int

const (
	claimGo   claim = iota // its intent is written down
	claimOver              // the work has ended
	claimPut               // it is for another work to make
)

// keyOf is the idempotency key of an invocation: the same on each attempt, in each
// process, and another one in each conversation, since a fork makes calls of its own
// that have the identities of its parent's. A conversation without an identity of its
// own, which another process cannot tell from others, has those of the invocations.
func keyOf(conversation, invocation string) string {
	if conversation == "" {
		return invocation
	}
	sum := sha256.Sum256([]byte(conversation + "\x00" + invocation))
	return base32.StdEncoding.EncodeToString(sum[:16])[:26]
}

// intentOf is what is written down before a call is made.
func (b *batch) intentOf(c *call, r ruling) canister.Intent {
	intent := canister.Intent{
		Invocation: c.invocation.ID,
		Attempt:    c.standing.attempts + 1,
		Key:        c.key,
		Repeatable: c.tool.Repeatable(),
		Wait:       r.wait,
	}
	if r.changed {
		intent.Arguments = b.written(r)
	}
	if r.approved.IsZero() {
		return intent
	}
	intent.Approved, intent.Fingerprint = r.approved, fingerprintOf(c)
	if identity, err := b.identity(); err == nil { // without one it holds for nobody
		intent.Identity = identity
	}
	return intent
}

// written is how the arguments that a call was changed to stand in its intent. What
// is secret of them is left out, which makes them no JSON object any more; an answer
// in the log has them anyway.
func (b *batch) written(r ruling) string {
	text := string(r.arguments)
	if cleaned := b.clean.json(r.arguments); r.wait == "" && cleaned != text {
		return "[not all of it] " + cleaned
	}
	return text
}

// whole reports whether the log has all of the arguments of an attempt.
func whole(intent canister.Intent) bool {
	return intent.Arguments == "" || isObject(json.RawMessage(intent.Arguments))
}

// rules notes that it is known whether a call is to be made.
func (b *batch) rules(c *call) {
	if !c.ruled {
		c.ruled = true
		b.ruling--
	}
}

// take takes in the calls that are to be made.
func (b *batch) take(c *call) {
	for more := true; more; {
		b.claiming = append(b.claiming, c)
		b.rules(c)
		select {
		case c = <-b.claims:
		default:
			more = false
		}
	}
}

// claimAll claims the calls that are to be made: those that were started together
// at the same time, unless one may wait for somebody who approves it.
func (b *batch) claimAll() {
	if len(b.claiming) > 0 && (b.ruling == 0 || b.opts.Approve != nil) {
		b.claim()
	}
}

// claim writes down the intents of the calls that are to be made, in one append:
// who finds that somebody else has gone on with the conversation makes none of
// them.
func (b *batch) claim() {
	calls, may := b.claiming, claimPut
	b.claiming = nil
	slices.SortFunc(calls, func(a, b *call) int { return a.place - b.place })
	func() {
		defer func() { // also should the log panic
			for _, c := range calls {
				c.claimed <- may
			}
		}()
		may = b.mayMake(calls)
	}()
	if may == claimGo {
		for _, c := range calls {
			b.emit(InvocationStarted{Invocation: c.invocation})
		}
	}
}

func (b *batch) mayMake(calls []*call) claim {
	switch {
	case b.putDown():
		return claimPut
	case b.ctx.Err() != nil:
		return claimOver
	}
	var intents []canister.Canister
	entering := map[string]bool{}
	for _, c := range calls {
		if b.opts.Log != nil || c.intent.Wait != "" || c.intent.Attempt > 1 {
			intent, err := b.headed(c.intent, entering)
			if err != nil {
				b.fail(err)
				b.lose()
				return claimPut
			}
			c.intent = intent.(canister.Intent)
			b.unmadeIntents[c.intent.ID] = true // unless it is known that they are in the log
			intents = append(intents, c.intent)
		}
	}
	if len(intents) > 0 && !b.append(intents...) {
		b.lose()
		return claimPut
	}
	for _, intent := range intents {
		delete(b.unmadeIntents, intent.Header().ID)
	}
	return claimGo
}
