// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"strings"
	"testing"
)

// A process that stands still is given up, another one ends the turn, and then
// it wakes up: it is told at its next append, and does nothing more in the world
// than the one call that it was about to make. What the log says stays.
func TestZombie(t *testing.T) {
	eachStore(t, func(t *testing.T, spec Spec) {
		for _, point := range []Point{
			{Moment: InStream, Exchange: 3},
			{Moment: BeforeAnswer, Exchange: 3},
			{Moment: BeforeIntent, Exchange: 3, Tool: Neither},
			{Moment: BeforeIntent, Exchange: 3, Tool: Idempotent},
			{Moment: AfterIntent, Exchange: 3, Tool: Neither},
			{Moment: AfterIntent, Exchange: 3, Tool: Idempotent},
			{Moment: InCall, Exchange: 3, Tool: Neither},
			{Moment: InCall, Exchange: 3, Tool: Idempotent},
			{Moment: BeforeResult, Exchange: 3, Tool: Neither},
			{Moment: BeforeResult, Exchange: 3, Tool: Idempotent},
		} {
			t.Run(point.String(), func(t *testing.T) { wakes(t, spec, point) })
		}
	})
}

func wakes(t *testing.T, spec Spec, point Point) {
	spec.Stop, spec.Conversation = true, point.String()
	w := NewWorld(t, spec, point)
	zombie := w.Start()
	if point.Moment == InCall {
		<-w.Stopped
	} else {
		zombie.StandsStill()
	}
	w.Spec.Point, w.Spec.Stop = nil, false
	w.Start().Succeeds()
	before := w.History(w.Store())
	close(w.Release)
	zombie.WakesUp()
	if said := zombie.Ends(); spec.Engine == "run" && !strings.Contains(said, "another writer has changed or deleted it") {
		t.Errorf("the one that woke up says %q, want that another writer has changed or deleted it", said)
	}
	if after := w.History(w.Store()); len(after) != len(before) {
		t.Errorf("there are %d canisters, and were %d before it woke up", len(after), len(before))
	}
	for exchange := 1; exchange <= Exchanges; exchange++ {
		for _, tool := range Tools {
			want := map[string]bool{"1": true}
			if exchange == point.Exchange && tool == point.Tool {
				want = allowed(point)
			}
			if cell := w.call(exchange, tool); !want[cell] {
				t.Errorf("the call of %s in exchange %d: %s", tool, exchange, cell)
			}
		}
	}
}

// allowed are the cells of the call that a zombie was at. Only between its intent
// and its result can it still reach the tool.
func allowed(point Point) map[string]bool {
	switch {
	case point.Moment == BeforeIntent:
		return map[string]bool{"1": true}
	case point.Tool == Idempotent:
		return map[string]bool{"2, the same key": true}
	}
	return map[string]bool{"1, unknown": true}
}
