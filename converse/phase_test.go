// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"testing"
)

// A piece of work goes forward only, and ends once, for the first reason.
func TestPhases(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for name, test := range map[string]struct {
		do   func(p *progress)
		want progress
	}{
		"answered": {func(p *progress) {
			p.enter(phaseTaken)
			p.enter(phaseAsked)
			p.complete(ReasonAnswered)
		}, progress{phase: phaseDone, reached: phaseAsked, reason: ReasonAnswered}},
		"nothing interrupts what is done": {func(p *progress) {
			p.complete(ReasonNothing)
			p.fail(first)
			p.end(phaseLeft, second)
		}, progress{phase: phaseDone, reason: ReasonNothing}},
		"an error comes before leaving": {func(p *progress) {
			p.enter(phaseTaken)
			p.fail(first)
			p.fail(second)
			p.end(phaseLeft, second)
		}, progress{phase: phaseLeft, reached: phaseTaken, err: first}},
		"no error after leaving": {func(p *progress) {
			p.end(phaseLeft, first)
			p.fail(second)
		}, progress{phase: phaseLeft, err: first}},
		"nothing is done after an error": {func(p *progress) {
			p.fail(first)
			p.enter(phaseTaken)
			p.complete(ReasonAnswered)
		}, progress{phase: phaseFailed, err: first}},
		"never back": {func(p *progress) {
			p.enter(phaseTaken)
			p.enter(phaseAsked)
			p.enter(phaseTaken)
			p.enter(phaseBegun)
		}, progress{phase: phaseAsked, reached: phaseAsked}},
		"the time counts before the budget": {func(p *progress) {
			p.limit(ReasonBudget)
			p.limit(ReasonTime)
			p.limit(ReasonBudget)
		}, progress{stop: ReasonTime}},
	} {
		t.Run(name, func(t *testing.T) {
			var p progress
			test.do(&p)
			if p != test.want {
				t.Errorf("the progress is %+v, want %+v", p, test.want)
			}
		})
	}
}
