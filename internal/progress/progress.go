// SPDX-License-Identifier: Apache-2.0

// Package progress reports what a long call does, and that it is alive.
package progress

import (
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Every is the longest time between two reports: well below the 30 s and 60 s after
// which callers give up a call that gives no sign of life.
const Every = 5 * time.Second

// Alive is the message of a report that says nothing else.
const Alive = "at work"

// Reporter reports the progress of a call to its caller, and that the call is alive
// whenever nothing was reported for [Every]. Its methods may be called concurrently.
type Reporter struct {
	call *invoker.Call

	mu    sync.Mutex
	steps float64
	timer *time.Timer // nil if nobody listens, and after End
}

// Begin begins to report, until End. Call may be nil. Nothing runs if its caller does
// not listen.
func Begin(call *invoker.Call) *Reporter {
	r := &Reporter{call: call}
	if call != nil && call.Progress != nil {
		r.mu.Lock() // the timer may fire before it is set
		defer r.mu.Unlock()
		r.timer = time.AfterFunc(Every, func() { r.Report(Alive, nil) })
	}
	return r
}

// Report reports one step, with a message for people and a piece of the result, of
// which both may be empty.
func (r *Reporter) Report(message string, partial []canister.Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		return
	}
	r.timer.Reset(Every)
	r.steps++
	r.call.Report(invoker.Progress{Done: r.steps, Message: message, Partial: partial})
}

// End ends the reports: none comes after it.
func (r *Reporter) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// Of is the message about the progress of a tool that the call itself uses.
func Of(tool string, p invoker.Progress) string {
	switch {
	case p.Message != "":
		return tool + ": " + p.Message
	case p.Total > 0:
		return tool + ": " + fmt.Sprint(p.Done, " of ", p.Total)
	}
	return tool + ": " + Alive
}
