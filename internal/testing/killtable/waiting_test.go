// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/waits"
)

// A call that waits for an approval still waits after the process, the server of its tool
// and that of the model have died, and six hours later. An approval that is a day late
// does not count.
func TestWaiting(t *testing.T) {
	eachStore(t, func(t *testing.T, spec Spec) {
		for name, c := range map[string]struct {
			verdict canister.Verdict
			offset  time.Duration
			cell    string
		}{
			"allowed":  {canister.VerdictAllow, 6 * time.Hour, "1, asked"},
			"denied":   {canister.VerdictDeny, 6 * time.Hour, "0, asked, denied"},
			"too late": {"", 25 * time.Hour, "0, asked, denied"},
		} {
			t.Run(name, func(t *testing.T) {
				spec.Conversation, spec.Defer = name, Neither
				w := NewWorld(t, spec, Point{Moment: AfterWait, Exchange: 1, Tool: Neither})
				w.Start().Dies()
				w.Spec.Point = nil
				for exchange := 1; exchange <= Exchanges; exchange++ {
					w.Renew()
					w.Spec.Offset += c.offset
					if c.verdict != "" {
						w.waits(exchange)
						w.decide(c.verdict)
					}
					w.Start().Succeeds()
				}
				w.ends(1)
				for exchange := 1; exchange <= Exchanges; exchange++ {
					if cell := w.call(exchange, Neither); cell != c.cell {
						t.Errorf("the call in exchange %d: %s, want %s", exchange, cell, c.cell)
					}
					if cell := w.call(exchange, Idempotent); cell != "1" {
						t.Errorf("the call beside it in exchange %d: %s", exchange, cell)
					}
				}
			})
		}
	})
}

// waits lets a process open the waiting conversation, which still waits afterwards; no
// question is asked.
func (w *World) waits(exchange int) {
	w.tb.Helper()
	store := w.Store()
	before := w.History(store)
	w.Start().Succeeds()
	if after := w.History(store); len(after) != len(before) {
		w.tb.Errorf("in exchange %d, %d canisters have become %d", exchange, len(before), len(after))
	}
	if n := len(w.Model.Requests()); n != 0 {
		w.tb.Errorf("in exchange %d, the model was asked %d times while the conversation waits", exchange, n)
	}
}

// decide answers the open wait, at the time of the child's clock.
func (w *World) decide(verdict canister.Verdict) {
	w.tb.Helper()
	store, now := w.Store(), time.Now().Add(w.Spec.Offset)
	found := waits.Open("", w.History(store), now)
	if len(found) != 1 || found[0].For != canister.WaitApproval {
		w.tb.Fatalf("it waits for %+v, want one approval", found)
	}
	answer := canister.Answer{Wait: found[0].ID, Verdict: verdict, By: "a person"}
	if err := waits.Answer(w.tb.Context(), store, w.Spec.Conversation, answer, now); err != nil {
		w.tb.Fatal(err)
	}
}
