// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/testing/raced"
)

// Column is a combination of a store and an engine. Processes are killed in the exchanges that
// CONSORT_KILLED says: "all" means each of the five, "three" the first, the third and the last.
// Otherwise, and with the race detector, it is the third.
type Column struct {
	Name   string
	Engine string // a key of the map passed to Main
	// Store returns a store for [OpenStore]: a new, empty one, or one that the
	// conversations share.
	Store func(tb testing.TB) string
	// Settings, if not nil, returns the settings of a child.
	Settings func(tb testing.TB) string
	// API is the index in [APIs] of the model of the first conversation. The others take
	// turns, so that three columns cover each kill with each API.
	API int
	// Parallel is how many conversations run at a time. The minimum and the default is 2.
	Parallel int
}

// Test kills the conversation at every point, and compares the outcomes with the column
// of the table in the file page.
func (c Column) Test(t *testing.T, page string) {
	t.Helper()
	t.Run(c.Name, func(t *testing.T) { c.test(t, page) })
}

func (c Column) test(t *testing.T, page string) {
	points := Points(exchanges()...)
	cells := make([]string, len(points))
	want := map[string][]piece{}
	for _, api := range APIs {
		want[api] = unkilled(c.world(t, Point{}, api))
	}
	// The conversations wait more than they compute, so that more of them may run at a
	// time than t.Parallel would allow.
	slots := make(chan struct{}, max(c.Parallel, 2))
	var killed sync.WaitGroup
	for i, point := range points {
		slots <- struct{}{}
		api := APIs[(c.API+i)%len(APIs)]
		killed.Go(func() {
			defer func() { <-slots }()
			t.Run(point.String()+"/"+api, func(t *testing.T) { cells[i] = c.kill(t, point, api, want[api]) })
		})
	}
	killed.Wait()
	if t.Failed() {
		return
	}
	rows := newColumn()
	for i, point := range points {
		rows.add(point.row(), cells[i])
	}
	rows.compare(t, page, c.Name)
}

// exchanges returns the exchanges at which conversations die.
func exchanges() []int {
	switch {
	case !Many():
		return []int{3}
	case os.Getenv("CONSORT_KILLED") == "three":
		return []int{1, 3, 5}
	}
	return []int{1, 2, 3, 4, 5}
}

// Many reports whether processes are to die in more places: CONSORT_KILLED is set, and the
// tests run without the race detector.
func Many() bool { return os.Getenv("CONSORT_KILLED") != "" && !raced.Enabled }

func (c Column) world(tb testing.TB, point Point, api string) *World {
	spec := Spec{Store: c.Store(tb), Engine: c.Engine, API: api, Conversation: point.String() + "/" + api, Ask: point.Ask}
	if c.Settings != nil {
		spec.Settings = c.Settings(tb)
	}
	return NewWorld(tb, spec, point)
}

// kill kills a conversation at a point, lets another process continue it, and returns the
// cell.
func (c Column) kill(t *testing.T, point Point, api string, want []piece) string {
	w := c.world(t, point, api)
	w.Start().Dies()
	w.Spec.Point = nil
	w.Start().Succeeds()
	if point.Ask {
		w.answer()
		w.Start().Succeeds()
	}
	requests := Exchanges + 1
	if point.Moment == InStream || point.Moment == BeforeAnswer {
		requests++
	}
	w.ends(requests)
	otherwise, struck := map[string]bool{}, "1"
	for exchange := 1; exchange <= Exchanges; exchange++ {
		for _, tool := range Tools {
			cell := w.call(exchange, tool)
			otherwise[callID(api, exchange, tool)] = strings.Contains(cell, "unknown")
			switch hit := exchange == point.Exchange; {
			case hit && tool == point.Tool:
				struck = cell
			case cell != "1" && !(hit && point.Together):
				t.Errorf("the call of %s in exchange %d, which was not struck: %s", tool, exchange, cell)
			}
		}
	}
	w.same(want, otherwise)
	return struck
}

// answer answers the question about the outcome of the call, as a person would after
// checking which effects really happened.
func (w *World) answer() {
	w.tb.Helper()
	store := w.Store()
	list := w.History(store)
	open := waits.Open("", list, time.Now())
	if len(open) != 1 || open[0].For != canister.WaitOutcome {
		w.tb.Fatalf("it open for %+v, want one outcome", open)
	}
	verdict := canister.Answer{Wait: open[0].ID, Verdict: canister.VerdictAllow, By: "a person"}
	for _, c := range list {
		if i, ok := c.(canister.Invocation); ok && i.ID == open[0].Invocation {
			for _, e := range w.Ledger().Effects() {
				if string(e.Arguments) == i.Arguments {
					verdict.Verdict, verdict.Content = canister.VerdictDone, canister.Texts("done: "+effectKey(e.Arguments))
				}
			}
		}
	}
	if err := waits.Answer(w.tb.Context(), store, w.Spec.Conversation, verdict, time.Now()); err != nil {
		w.tb.Fatal(err)
	}
}

func effectKey(arguments json.RawMessage) string {
	var a struct{ Key string }
	_ = json.Unmarshal(arguments, &a)
	return a.Key
}
