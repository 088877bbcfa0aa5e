// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"slices"
)

// phase is how far a piece of work has come.
type phase int

const (
	// phaseBegun: nothing of the turn is taken up. Open calls belong to earlier work.
	phaseBegun phase = iota
	// phaseTaken: the open step of the turn is taken up. This work must give its calls
	// their results, and earlier work may have made them.
	phaseTaken
	// phaseAsked: a reply of the model is in the history. The open calls belong to
	// that reply, and only this work has made any of them.
	phaseAsked
	// phaseFailed: an error has ended the work, and the caller does not know it yet.
	phaseFailed
	// phaseLeft: the caller has left the loop over the events, or has received the
	// error. It receives nothing else.
	phaseLeft
	// phaseDone: the work is complete. Nothing can interrupt it.
	phaseDone
)

// follows lists the phases that may follow a phase. The work ignores every other
// change: it ends once, for the first reason.
var follows = map[phase][]phase{
	phaseBegun:  {phaseTaken, phaseFailed, phaseLeft, phaseDone},
	phaseTaken:  {phaseAsked, phaseFailed, phaseLeft, phaseDone},
	phaseAsked:  {phaseFailed, phaseLeft, phaseDone},
	phaseFailed: {phaseLeft},
	phaseLeft:   nil,
	phaseDone:   nil,
}

// progress is the state of a piece of work: how far it has come, and why it ends.
type progress struct {
	phase   phase
	reached phase  // the furthest of the phases before phaseFailed; it stays while calls run
	stop    Reason // the limit that allows no further exchange: ReasonTime, ReasonBudget or ""
	reason  Reason // why the turn has ended, in phaseDone
	err     error  // the first reason to end the work early
}

// enter changes the phase, and reports whether the table allows the change.
func (p *progress) enter(next phase) bool {
	if !slices.Contains(follows[p.phase], next) {
		return false
	}
	p.phase = next
	if next < phaseFailed {
		p.reached = next
	}
	return true
}

// end ends the work early in phaseFailed or phaseLeft. Only the first reason is kept.
func (p *progress) end(next phase, err error) {
	if p.enter(next) {
		p.err = cmp.Or(p.err, err)
	}
}

// fail ends the work with an error for the caller.
func (p *progress) fail(err error) { p.end(phaseFailed, err) }

// ended reports whether the work has ended early.
func (p *progress) ended() bool { return p.phase == phaseFailed || p.phase == phaseLeft }

// complete ends the work in phaseDone, with nothing left to do now.
func (p *progress) complete(reason Reason) {
	if p.enter(phaseDone) {
		p.reason = reason
	}
}

// limit records that a limit allows no further exchange. The time of the turn counts
// before the budget.
func (p *progress) limit(reason Reason) {
	if reason == ReasonTime || p.stop == "" {
		p.stop = reason
	}
}
