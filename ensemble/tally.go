// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"slices"
	"time"
)

// recentCalls is the number of calls that the latencies cover.
const recentCalls = 256

// Latency summarizes the durations of the newest calls, at most 256, whether or not
// they succeeded; zero without calls. Time spent waiting for the user does not count.
type Latency struct {
	Last time.Duration // the newest call
	P50  time.Duration // median
	P99  time.Duration // 99th percentile
}

// tally holds the counters of an ensemble; Ensemble.mu guards it.
type tally struct {
	inFlight, calls, failures, restarts, repeats, late int

	requests int // for resources and prompts, in progress

	success time.Time // of the newest call or attempt to connect that succeeded
	used    time.Time // when a call last began or ended, or a connection was made
	took    []time.Duration
}

// beginCall counts a call that begins.
func (e *Ensemble) beginCall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.inFlight++
	e.tally.used = time.Now()
}

// beginRequest counts a request for a resource or prompt, which counts as a use but not
// as a call.
func (e *Ensemble) beginRequest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.requests++
	e.tally.used = time.Now()
}

func (e *Ensemble) endRequest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.requests--
	e.tally.used = time.Now()
}

// inUse reports whether a call or request is in progress; Ensemble.mu is held.
func (t *tally) inUse() bool { return t.inFlight > 0 || t.requests > 0 }

// repeatCall counts a call that is made again.
func (e *Ensemble) repeatCall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.repeats++
}

// endCall counts a call that is over.
func (e *Ensemble) endCall(took time.Duration, succeeded bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.tally
	t.inFlight--
	t.used = time.Now()
	if len(t.took) < recentCalls {
		t.took = append(t.took, took)
	} else {
		t.took[t.calls%recentCalls] = took
	}
	t.calls++
	if succeeded {
		t.success = t.used
	} else {
		t.failures++
	}
}

// latency summarizes the durations of the newest calls; Ensemble.mu is held.
func (t *tally) latency() Latency {
	if len(t.took) == 0 {
		return Latency{}
	}
	last := t.took[(t.calls-1)%recentCalls]
	sorted := slices.Sorted(slices.Values(t.took))
	// The nearest rank: the smallest that p percent of them do not exceed.
	rank := func(p int) time.Duration { return sorted[(len(sorted)*p+99)/100-1] }
	return Latency{Last: last, P50: rank(50), P99: rank(99)}
}
