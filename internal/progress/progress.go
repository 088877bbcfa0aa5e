// SPDX-License-Identifier: Apache-2.0

// Package progress reports the progress of long calls, and that they are still
// alive.
package progress

import (
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Every is the maximum time between two reports: well below the 30 s and 60 s
// after which callers give up a call without progress.
const Every = 5 * time.Second

// Alive is the message of a report without other news.
const Alive = "at work"

// Reporter reports the progress of a call to its caller. If nothing was reported
// for [Every], it reports that the call is alive. Its methods may be called
// concurrently.
type Reporter struct {
	call *invoker.Call

	mu    sync.Mutex
	steps float64
	timer *time.Timer // nil if the caller does not listen, and after End
}

// Begin starts a reporter, which the caller must End. call may be nil. If the
// call's caller does not listen, no timer runs.
func Begin(call *invoker.Call) *Reporter {
	r := &Reporter{call: call}
	if call != nil && call.Progress != nil {
		r.mu.Lock() // the timer may fire before r.timer is set
		defer r.mu.Unlock()
		r.timer = time.AfterFunc(Every, func() { r.Report(Alive, nil) })
	}
	return r
}

// Report reports one step, with a message for people and a piece of the result.
// Both may be empty.
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

// End stops the reports; none is made after it returns.
func (r *Reporter) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// Of returns the message about the progress of a tool that the call itself uses.
func Of(tool string, p invoker.Progress) string {
	switch {
	case p.Message != "":
		return tool + ": " + p.Message
	case p.Total > 0:
		return tool + ": " + fmt.Sprint(p.Done, " of ", p.Total)
	}
	return tool + ": " + Alive
}
